_nearfield() {
  local words="run exec env compare stats check info bench model explain plan tune report demo place survey"
  [ "$COMP_CWORD" -gt 1 ] && case ${COMP_WORDS[1]} in
    run) words="--stats --stats-file --check --log --log-file --algorithm --heap --report --trace --host" ;;
    exec) words="--stats --stats-file --check --log --log-file --algorithm --heap" ;;
    env) words="--csh --stats --stats-file --check --log --log-file --algorithm --heap" ;;
    compare) words="--runs --json --report --status --host --log --log-file --algorithm" ;;
    stats) words="" ;;
    check) words="--host" ;;
    info) words="--json --all --settings" ;;
    bench) words="--op --ranks --sizes --hosts --buffers --seconds --quick --scan --algorithm --heap --floor --loop --short --protocol --window --target --beside --json --report --svg" ;;
    model) words="--ranks --sizes --nodes --ranks-per-node --machine --calibrate --constants --simulate --state --shift --json --svg --plot" ;;
    explain) words="--ranks --bytes --nodes --ranks-per-node --machine --json" ;;
    plan) words="--ranks --machine --pairs --no-collectives --no-long --communicators --heap --windows --alloc-mem --job --json" ;;
    tune) words="--op --ranks --sizes --host --seconds --out" ;;
    report) words="--out" ;;
    demo) words="--out --full" ;;
    place) words="--machine --world --rankfile --node --json" ;;
    survey) words="--report --out --minutes --hosts --op --ranks" ;;
    *) words= ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _nearfield nearfield
