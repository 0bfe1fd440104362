#!/bin/sh
# A trial as a job of Slurm, which CLARINET_LAUNCHER=slurm gives to sbatch. The worker's settings come with it.
# $TRIAL, $JOB and $PROCESSES are filled in; a job that is ended has a minute for its checkpoint.
#SBATCH --ntasks=1
#SBATCH --gres=gpu:$PROCESSES
#SBATCH --cpus-per-task=8
#SBATCH --mem=32G
#SBATCH --signal=B:TERM@60
#SBATCH --output=clarinet-%j.log
export CLARINET_DEVICE=cuda CLARINET_GPUS=$PROCESSES
exec clarinet worker --once $TRIAL
