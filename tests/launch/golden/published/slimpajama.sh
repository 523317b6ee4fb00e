# sbatch --parsable --job-name=slimpajama.download --ntasks-per-node=1 --array=0-0 /lustre/home/runs/slimpajama/launch/slimpajama/job.sh download
# sbatch --parsable --job-name=slimpajama.extract --ntasks-per-node=32 --array=0-31 --dependency=afterok:101 --kill-on-invalid-dep=yes /lustre/home/runs/slimpajama/launch/slimpajama/job.sh extract
# sbatch --parsable --job-name=slimpajama.concat --ntasks-per-node=32 --array=0-31 --dependency=afterok:102 --kill-on-invalid-dep=yes /lustre/home/runs/slimpajama/launch/slimpajama/job.sh concat
# sbatch --parsable --job-name=slimpajama.tokenize --ntasks-per-node=32 --array=0-3 --dependency=afterok:103 --kill-on-invalid-dep=yes /lustre/home/runs/slimpajama/launch/slimpajama/job.sh tokenize
#!/bin/bash
#SBATCH --job-name=slimpajama
#SBATCH --nodes=1
#SBATCH --partition=hpc
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --cpus-per-task=1
#SBATCH --requeue
#SBATCH --output=/dev/null

# Stages that wait for each other, each an array of tasks that divide its work; this is one task of one stage. A task that fails ends
# the launch, and what waits for its stage is cancelled. Work that is done is not done again: submit all of it again to go on.
#   id=$(sbatch --parsable --job-name=slimpajama.download --ntasks-per-node=1 --array=0-0 job.sh download)
#   id=$(sbatch --parsable --job-name=slimpajama.extract --ntasks-per-node=32 --array=0-31 --dependency=afterok:$id --kill-on-invalid-dep=yes job.sh extract)
#   id=$(sbatch --parsable --job-name=slimpajama.concat --ntasks-per-node=32 --array=0-31 --dependency=afterok:$id --kill-on-invalid-dep=yes job.sh concat)
#   id=$(sbatch --parsable --job-name=slimpajama.tokenize --ntasks-per-node=32 --array=0-3 --dependency=afterok:$id --kill-on-invalid-dep=yes job.sh tokenize)

launch=/lustre/home/runs/slimpajama/launch/slimpajama
work=/lustre/home
last=tokenize
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

note start "$generation" "$job" "$SLURM_JOB_NODELIST"
trap : TERM  # goes to the program; this script waits for its answer
case $stage in
download)
tasks=1
srun --kill-on-bad-exit=0 --wait=0 \
  --cpus-per-task=1 \
  --container-image=/lustre/megalith.sqsh \
  --container-mounts=/opt/microsoft:/opt/microsoft:ro,/lustre:/lustre \
  --container-writable \
  --no-container-mount-home \
  --container-env=CUDA_DEVICE_ORDER,CUDA_DEVICE_MAX_CONNECTIONS,NCCL_TOPO_FILE,NCCL_IB_PCI_RELAXED_ORDERING,NCCL_IB_QPS_PER_CONNECTION,NCCL_IGNORE_CPU_AFFINITY,NCCL_P2P_NET_CHUNKSIZE,NCCL_PXN_DISABLE,NCCL_MIN_NCHANNELS,NCCL_SOCKET_IFNAME,UCX_TLS,UCX_NET_DEVICES \
  megalith data download \
  --list /lustre/slimpajama/urls.txt \
  --output-dir /lustre/slimpajama/raw
;;
extract)
tasks=32
srun --kill-on-bad-exit=0 --wait=0 \
  --label \
  --cpus-per-task=1 \
  --container-image=/lustre/megalith.sqsh \
  --container-mounts=/opt/microsoft:/opt/microsoft:ro,/lustre:/lustre \
  --container-writable \
  --no-container-mount-home \
  --container-env=CUDA_DEVICE_ORDER,CUDA_DEVICE_MAX_CONNECTIONS,NCCL_TOPO_FILE,NCCL_IB_PCI_RELAXED_ORDERING,NCCL_IB_QPS_PER_CONNECTION,NCCL_IGNORE_CPU_AFFINITY,NCCL_P2P_NET_CHUNKSIZE,NCCL_PXN_DISABLE,NCCL_MIN_NCHANNELS,NCCL_SOCKET_IFNAME,UCX_TLS,UCX_NET_DEVICES \
  megalith data extract \
  --input '/lustre/slimpajama/raw/*.jsonl.zst' \
  --output-dir /lustre/slimpajama/text \
  --keep meta.redpajama_set_name=RedPajamaCommonCrawl,RedPajamaC4,RedPajamaGithub,RedPajamaArXiv,RedPajamaWikipedia,RedPajamaStackExchange
;;
concat)
tasks=32
srun --kill-on-bad-exit=0 --wait=0 \
  --label \
  --cpus-per-task=1 \
  --container-image=/lustre/megalith.sqsh \
  --container-mounts=/opt/microsoft:/opt/microsoft:ro,/lustre:/lustre \
  --container-writable \
  --no-container-mount-home \
  --container-env=CUDA_DEVICE_ORDER,CUDA_DEVICE_MAX_CONNECTIONS,NCCL_TOPO_FILE,NCCL_IB_PCI_RELAXED_ORDERING,NCCL_IB_QPS_PER_CONNECTION,NCCL_IGNORE_CPU_AFFINITY,NCCL_P2P_NET_CHUNKSIZE,NCCL_PXN_DISABLE,NCCL_MIN_NCHANNELS,NCCL_SOCKET_IFNAME,UCX_TLS,UCX_NET_DEVICES \
  megalith data concat \
  --input '/lustre/slimpajama/text/*.jsonl' \
  --output-dir /lustre/slimpajama/chunks \
  --files-per-chunk 800
;;
tokenize)
tasks=4
srun --kill-on-bad-exit=0 --wait=0 \
  --label \
  --cpus-per-task=1 \
  --container-image=/lustre/megalith.sqsh \
  --container-mounts=/opt/microsoft:/opt/microsoft:ro,/lustre:/lustre \
  --container-writable \
  --no-container-mount-home \
  --container-env=CUDA_DEVICE_ORDER,CUDA_DEVICE_MAX_CONNECTIONS,NCCL_TOPO_FILE,NCCL_IB_PCI_RELAXED_ORDERING,NCCL_IB_QPS_PER_CONNECTION,NCCL_IGNORE_CPU_AFFINITY,NCCL_P2P_NET_CHUNKSIZE,NCCL_PXN_DISABLE,NCCL_MIN_NCHANNELS,NCCL_SOCKET_IFNAME,UCX_TLS,UCX_NET_DEVICES \
  megalith data tokenize \
  --input '/lustre/slimpajama/chunks/*.jsonl' \
  --output-dir /lustre/slimpajama/preprocessed \
  --tokenizer-type GPT2BPETokenizer \
  --vocab-file /lustre/bpe/vocab.json \
  --merge-file /lustre/bpe/merges.txt \
  --append-eod
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
