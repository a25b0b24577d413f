complete -c nearfield -n __fish_use_subcommand -a run -d 'start a launcher and load Nearfield into its MPI programs'
complete -c nearfield -n __fish_use_subcommand -a exec -d 'start a program with Nearfield, as one rank of a job'
complete -c nearfield -n __fish_use_subcommand -a env -d 'print the variables that `nearfield run` sets, for job scripts'
complete -c nearfield -n __fish_use_subcommand -a compare -d 'compare a command with and without Nearfield'
complete -c nearfield -n __fish_use_subcommand -a stats -d 'add up the statistics that the ranks of jobs have written'
complete -c nearfield -n __fish_use_subcommand -a check -d 'say whether Nearfield would serve a program, and if not, why'
complete -c nearfield -n __fish_use_subcommand -a info -d 'show the machine, ways of reaching memory, and MPIs found'
complete -c nearfield -n __fish_use_subcommand -a bench -d 'measure MPI calls with and without Nearfield'
complete -c nearfield -n __fish_use_subcommand -a model -d 'estimate the time of each algorithm, and show the choice'
complete -c nearfield -n __fish_use_subcommand -a explain -d 'explain which algorithm a call would use, and why'
complete -c nearfield -n __fish_use_subcommand -a plan -d 'calculate Nearfield's memory, and suggest where to place it'
complete -c nearfield -n __fish_use_subcommand -a tune -d 'measure which algorithms are fastest, for NEARFIELD_CHOOSE=file'
complete -c nearfield -n __fish_use_subcommand -a report -d 'write the page of a run again, from its JSON file'
complete -c nearfield -n __fish_use_subcommand -a demo -d 'run five example programs and show what they gain'
complete -c nearfield -n __fish_use_subcommand -a place -d 'suggest a CPU for each rank of a program that has run'
complete -c nearfield -n __fish_use_subcommand -a survey -d 'measure a machine: distances, messages, collectives'
complete -c nearfield -n '__fish_seen_subcommand_from run' -l stats -l stats-file -l check -l log -l log-file -l algorithm -l heap -l report -l trace -l host
complete -c nearfield -n '__fish_seen_subcommand_from exec' -l stats -l stats-file -l check -l log -l log-file -l algorithm -l heap
complete -c nearfield -n '__fish_seen_subcommand_from env' -l csh -l stats -l stats-file -l check -l log -l log-file -l algorithm -l heap
complete -c nearfield -n '__fish_seen_subcommand_from compare' -l runs -l json -l report -l status -l host -l log -l log-file -l algorithm
complete -c nearfield -n '__fish_seen_subcommand_from stats'
complete -c nearfield -n '__fish_seen_subcommand_from check' -l host
complete -c nearfield -n '__fish_seen_subcommand_from info' -l json -l all -l settings
complete -c nearfield -n '__fish_seen_subcommand_from bench' -l op -l ranks -l sizes -l hosts -l buffers -l seconds -l quick -l scan -l algorithm -l heap -l floor -l loop -l short -l protocol -l window -l target -l beside -l json -l report -l svg
complete -c nearfield -n '__fish_seen_subcommand_from model' -l ranks -l sizes -l nodes -l ranks-per-node -l machine -l calibrate -l constants -l simulate -l state -l shift -l json -l svg -l plot
complete -c nearfield -n '__fish_seen_subcommand_from explain' -l ranks -l bytes -l nodes -l ranks-per-node -l machine -l json
complete -c nearfield -n '__fish_seen_subcommand_from plan' -l ranks -l machine -l pairs -l no-collectives -l no-long -l communicators -l heap -l windows -l alloc-mem -l job -l json
complete -c nearfield -n '__fish_seen_subcommand_from tune' -l op -l ranks -l sizes -l host -l seconds -l out
complete -c nearfield -n '__fish_seen_subcommand_from report' -l out
complete -c nearfield -n '__fish_seen_subcommand_from demo' -l out -l full
complete -c nearfield -n '__fish_seen_subcommand_from place' -l machine -l world -l rankfile -l node -l json
complete -c nearfield -n '__fish_seen_subcommand_from survey' -l report -l out -l minutes -l hosts -l op -l ranks
