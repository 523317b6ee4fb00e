#!/bin/bash
#SBATCH --job-name=gpt
#SBATCH --nodes=1
#SBATCH --partition=gpu
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --cpus-per-task=8
#SBATCH --time=4:00:00
#SBATCH --requeue
#SBATCH --output=/dev/null

# Stages that wait for each other, each an array of tasks that divide its work; this is one task of one stage. A task that fails ends
# the launch, and what waits for its stage is cancelled. Work that is done is not done again: submit all of it again to go on.
#   id=$(sbatch --parsable --job-name=gpt.tokenize --ntasks-per-node=4 --array=0-7%2 job.sh tokenize)
#   id=$(sbatch --parsable --job-name=gpt.merge --ntasks-per-node=1 --array=0-0 --dependency=afterok:$id --kill-on-invalid-dep=yes job.sh merge)

launch=/shared/runs/gpt/launch/gpt
work=/shared
last=merge
stage=$1
task=${SLURM_ARRAY_TASK_ID:-0}
log=$launch/tasks/$stage.$task.log
journal=$launch/tasks/$stage.$task.journal
job=${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}_$task

say() { echo "megalith launch: $*"; }
note() { echo "$(date +%FT%T%z) $*" >>"$journal"; }

# end CODE REASON: nothing of this launch starts again. The first reason stays.
end() {
  note end "$generation" "$job" "$1" "$2"
  [[ -e $launch/ended ]] || echo "$1 $2" >"$launch/ended"
  say "$2 (exit code $1)"
  exit "$1"
}

# There is no run on storage that this node does not see.
cd "$work" && [[ -w $launch ]] || exit 2
exec >>"$log" 2>&1
: >>"$journal"
generation=$(grep -c '^[^ ]* start ' "$journal")
if [[ -e $launch/ended ]]; then
  read -r code reason <"$launch/ended"
  say "this launch has ended: $reason; remove $launch/ended to start it again"
  exit "$code"
fi
# A start without an end: nothing of it lived to say why.
if [[ $(tail -n 1 "$journal") =~ ^[^\ ]+\ start\ ([0-9]+)\ ([^\ ]+)\ (.*)$ ]]; then
  note end "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" 137 "killed on ${BASH_REMATCH[3]}, as when a node is lost"
fi
[[ ! -e $launch/stop ]] || end 75 "stopped on request"

export CUDA_DEVICE_ORDER=PCI_BUS_ID
export CUDA_DEVICE_MAX_CONNECTIONS=1
export NCCL_TOPO_FILE=/opt/microsoft/ndv5-topo.xml
export NCCL_IB_PCI_RELAXED_ORDERING=1
export NCCL_IB_QPS_PER_CONNECTION=4
export NCCL_IGNORE_CPU_AFFINITY=1
export NCCL_P2P_NET_CHUNKSIZE=524288
export NCCL_PXN_DISABLE=1
export NCCL_MIN_NCHANNELS=32
export NCCL_SOCKET_IFNAME=eth0
export UCX_TLS=rc
export UCX_NET_DEVICES=mlx5_ib0:1
export MEGALITH_NUMA=1

note start "$generation" "$job" "$SLURM_JOB_NODELIST"
trap : TERM  # goes to the program; this script waits for its answer
case $stage in
tokenize)
tasks=8
srun --kill-on-bad-exit=0 --wait=0 \
  --label \
  --cpus-per-task=8 \
  /opt/megalith/bin/megalith data tokenize \
  --input 'raw/*.jsonl' \
  --output-dir tokens
;;
merge)
tasks=1
srun --kill-on-bad-exit=0 --wait=0 \
  --cpus-per-task=8 \
  /opt/megalith/bin/megalith data merge \
  --input 'tokens/*_document' \
  --output-prefix all
;;
*) say "there is no stage '$stage'"; false ;;
esac
code=$?
[[ ! -e $launch/stop ]] || end 75 "stopped on request"
case $code in
  0) ;;
  2) end 2 "$stage: the input is wrong, the log of task $task says what" ;;
  143) end 143 "$stage: task $task was ended by Slurm, at its time limit or by scancel; launch again to go on" ;;
  *) end "$code" "$stage: task $task failed on $SLURM_JOB_NODELIST" ;;
esac
: >"$launch/tasks/$stage.$task.done"
done=("$launch/tasks/$stage".*.done)
if [[ $stage == "$last" ]] && ((${#done[@]} == tasks)); then end 0 "complete"; fi
note end "$generation" "$job" 0 "$stage: task $task complete"
