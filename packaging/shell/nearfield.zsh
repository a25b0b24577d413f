#compdef nearfield
if ((CURRENT == 2)); then
  compadd -- run exec env compare stats check info bench model explain plan tune report demo place survey
  return
fi
[[ $words[CURRENT] == -* ]] || { _files; return }
case $words[2] in
  run) compadd -- --stats --stats-file --check --log --log-file --algorithm --heap --report --trace --host ;;
  exec) compadd -- --stats --stats-file --check --log --log-file --algorithm --heap ;;
  env) compadd -- --csh --stats --stats-file --check --log --log-file --algorithm --heap ;;
  compare) compadd -- --runs --json --report --status --host --log --log-file --algorithm ;;
  stats) compadd --  ;;
  check) compadd -- --host ;;
  info) compadd -- --json --all --settings ;;
  bench) compadd -- --op --ranks --sizes --hosts --buffers --seconds --quick --scan --algorithm --heap --floor --loop --short --protocol --window --target --beside --json --report --svg ;;
  model) compadd -- --ranks --sizes --nodes --ranks-per-node --machine --calibrate --constants --simulate --state --shift --json --svg --plot ;;
  explain) compadd -- --ranks --bytes --nodes --ranks-per-node --machine --json ;;
  plan) compadd -- --ranks --machine --pairs --no-collectives --no-long --communicators --heap --windows --alloc-mem --job --json ;;
  tune) compadd -- --op --ranks --sizes --host --seconds --out ;;
  report) compadd -- --out ;;
  demo) compadd -- --out --full ;;
  place) compadd -- --machine --world --rankfile --node --json ;;
  survey) compadd -- --report --out --minutes --hosts --op --ranks ;;
esac
