"""Job scripts of Slurm, and the time that it leaves a job."""
