# sbatch --parsable /lustre/home/runs/gpt3-23b/launch/gpt3-23b-compile/job.sh
#!/bin/bash
#SBATCH --job-name=gpt3-23b-compile
#SBATCH --nodes=16
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --requeue
#SBATCH --output=/dev/null

# One start of a run that may take several. How it goes on depends on the exit code of the program:
#   0 complete, 2 the input is wrong, 70 given up: the job ends with it.
#   75 stopped early and saved: it starts again, but for the second time in a row without a newer checkpoint.
#   any other: it starts again if there is a newer checkpoint than at its start.

launch=/lustre/home/runs/gpt3-23b/launch/gpt3-23b-compile
work=/lustre/home
tracker=''
log=$launch/log.txt
journal=$launch/journal
job=$SLURM_JOB_ID

say() { echo "megalith launch: $*"; }
note() { echo "$(date +%FT%T%z) $*" >>"$journal"; }

# end CODE REASON: nothing of this launch starts again. The first reason stays.
end() {
  note end "$generation" "$job" "$1" "$2"
  [[ -e $launch/ended ]] || echo "$1 $2" >"$launch/ended"
  say "$2 (exit code $1)"
  exit "$1"
}

# Steps that the newest checkpoint has behind it; -1: there is none.
newest_checkpoint() {
  local step=-1
  [[ -z $tracker ]] || read -r step 2>/dev/null <"$tracker"
  [[ $step =~ ^[0-9]+$ ]] && echo "$step" || echo -1
}

# yield CODE: a node that was cut off can come to its end after the next start has begun, which alone has a say then.
yield() {
  (($(grep -c '^[^ ]* start ' "$journal") > generation + 1)) || return 0
  say "start $((generation + 1)) was given up for lost, and another has begun (exit code $1)"
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
    yield "$1"
    scontrol requeue "$SLURM_JOB_ID" && sleep 600  # until Slurm ends this script
    sleep 10
  done
  yield "$1"
  end "$1" "$2; Slurm does not take the job back into its queue"
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

export MASTER_ADDR MASTER_PORT MEGALITH_GENERATION
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000))  # two jobs may share a node
MEGALITH_GENERATION=$generation
# What the shell that submitted this may hold for other launchers.
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE JOB_COMPLETION_INDEX NNODES NPROC MEGALITH_STORE_SECRET
export FI_PROVIDER=efa
export FI_EFA_USE_DEVICE_RDMA=1
export FI_EFA_FORK_SAFE=1
export MEGALITH_STORE_SECRET_FILE=/lustre/home/runs/gpt3-23b/launch/gpt3-23b-compile/secret

note start "$generation" "$job" "$SLURM_JOB_NODELIST"

before=$(newest_checkpoint)
trap : TERM  # goes to the ranks; this script waits for their answer
srun --kill-on-bad-exit=0 --wait=60 \
  /lustre/home/bin/megalith train \
  --compile-only \
  -c /lustre/home/runs/gpt3-23b/launch/gpt3-23b-compile/gpt3-23b.yaml \
  exp_manager.explicit_log_dir=/lustre/home/runs/gpt3-23b \
  exp_manager.resume_if_exists=true \
  --nproc 8
code=$?
yield "$code"
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
