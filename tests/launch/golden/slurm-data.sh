#!/bin/bash
#SBATCH --job-name=gpt
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --partition=gpu
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --cpus-per-task=8
#SBATCH --time=4:00:00
#SBATCH --requeue
#SBATCH --output=/dev/null

# One start of a run that may take several. How it goes on depends on the exit code of the program:
#   0 complete, 2 the input is wrong, 70 given up: the job ends with it.
#   75 stopped early and saved: it starts again, but for the second time in a row without a newer checkpoint.
#   any other: it starts again if there is a newer checkpoint than at its start.

launch=/shared/runs/gpt/launch/gpt
work=/shared
tracker=''
job=$SLURM_JOB_ID

say() { echo "megalith launch: $*"; }
note() { echo "$(date +%FT%T%z) $*" >>"$launch/journal"; }

# Steps that the newest checkpoint has behind it; -1: there is none.
newest_checkpoint() {
  local step=-1
  [[ -z $tracker ]] || read -r step 2>/dev/null <"$tracker"
  [[ $step =~ ^[0-9]+$ ]] && echo "$step" || echo -1
}

# end CODE REASON: nothing of this launch starts again.
end() {
  note end "$generation" "$job" "$1" "$2"
  echo "$1 $2" >"$launch/ended"
  say "$2 (exit code $1)"
  exit "$1"
}

# again CODE REASON: this job goes back to the queue, and on from the newest checkpoint.
again() {
  note end "$generation" "$job" "$1" "$2"
  state=$(squeue --noheader --jobs="$SLURM_JOB_ID" --format=%T) || state=RUNNING
  if [[ $state != RUNNING ]]; then
    say "$2 (exit code $1); Slurm says $state, so that it is not started again"
    exit "$1"
  fi
  say "$2 (exit code $1); back to the queue"
  trap - TERM
  for _ in {1..60}; do
    scontrol requeue "$SLURM_JOB_ID" && sleep 600  # until Slurm ends this script
    sleep 10
  done
  end "$1" "$2; Slurm does not take the job back into its queue"
}

# There is no run on storage that this node does not see.
cd "$work" && [[ -w $launch ]] || exit 2
exec >>"$launch/log.txt" 2>&1
: >>"$launch/journal"
generation=$(grep -c '^[^ ]* start ' "$launch/journal")
if [[ -e $launch/ended ]]; then
  read -r code reason <"$launch/ended"
  say "this launch has ended: $reason; remove $launch/ended to start it again"
  exit "$code"
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

before=$(newest_checkpoint)
note start "$generation" "$job" "$SLURM_JOB_NODELIST"
trap : TERM  # goes to the ranks; this script waits for their answer
srun --kill-on-bad-exit=0 --wait=0 \
  --label \
  --cpus-per-task=8 \
  /opt/megalith/bin/megalith data tokenize \
  --input 'raw/*.jsonl'
code=$?
after=$(newest_checkpoint)
((after > before)) && rm -f "$launch/fruitless"
case $code in
  0) end 0 "complete" ;;
  2) end 2 "the input is wrong, the log says what" ;;
  70) end 70 "given up" ;;
esac
[[ ! -e $launch/stop ]] || end "$code" "stopped on request"
((code == 75)) && reason="stopped early" || reason="failed"
if ((after > before)); then again "$code" "$reason, step $after saved"; fi
((code == 75)) || end "$code" "failed without a newer checkpoint than at its start (step $before)"
[[ ! -e $launch/fruitless ]] || end 75 "stopped early twice in a row without a newer checkpoint"
: >"$launch/fruitless"
again 75 "stopped early, nothing saved"
