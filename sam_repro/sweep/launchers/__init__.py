"""Where runs are started: slots of this machine, jobs of Slurm."""
