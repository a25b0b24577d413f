
#compdef nearfield

_nearfield_completion() {
  eval $(env _TYPER_COMPLETE_ARGS="${words[1,$CURRENT]}" _NEARFIELD_COMPLETE=complete_zsh nearfield)
}

compdef _nearfield_completion nearfield

