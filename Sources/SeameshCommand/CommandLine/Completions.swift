/// Completion scripts for shells, made from the table of verbs.
enum Completions {
  static let shells = ["bash", "zsh", "fish"]

  static func script(for shell: String, _ verbs: [Verb]) -> String {
    switch shell {
    case "zsh": zsh(verbs)
    case "fish": fish(verbs)
    default: bash(verbs)
    }
  }

  private static func bash(_ verbs: [Verb]) -> String {
    var cases = ""
    for verb in verbs {
      let words = (verb.allOptions.map { "--" + $0.name } + choices(verb)).joined(separator: " ")
      cases += "    \(verb.name)) words=\"\(words)\" ;;\n"
    }
    return """
      _seamesh() {
        local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} verb= words= i
        # Readline takes --option=value for three words.
        if [[ $previous == = ]]; then previous=${COMP_WORDS[COMP_CWORD-2]}; fi
        if [[ $word == = ]]; then word=; fi
        for ((i = 1; i < COMP_CWORD; i++)); do
          case ${COMP_WORDS[i]} in
            --data|--log-level|--log-file) ((i++)); [[ ${COMP_WORDS[i]} == = ]] && ((i++)) ;;
            -*) ;;
            *) verb=${COMP_WORDS[i]}; break ;;
          esac
        done
        case $previous in
      \(bashValues(verbs))    --*) ;;
        esac
        case $verb in
          "") words="\((verbs.map(\.name) + globalOptions.map { "--" + $0.name }).joined(separator: " "))" ;;
      \(cases)  esac
        COMPREPLY=($(compgen -W "$words" -- "$word"))
        [[ ${#COMPREPLY[@]} -eq 0 && $word != -* ]] && COMPREPLY=($(compgen -f -- "$word"))
      }
      complete -o filenames -F _seamesh seamesh

      """
  }

  /// What completes the value after an option: names are unique in meaning over all verbs.
  private static func bashValues(_ verbs: [Verb]) -> String {
    unique(verbs.flatMap(\.allOptions)).compactMap { option in
      switch option.value {
      case .none, .text, .object: nil
      case .file: "    --\(option.name)) COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n"
      case .directory: "    --\(option.name)) COMPREPLY=($(compgen -d -- \"$word\")); return ;;\n"
      case .choice(_, let choices):
        "    --\(option.name)) COMPREPLY=($(compgen -W \"\(choices.joined(separator: " "))\" -- \"$word\")); return ;;\n"
      }
    }.joined()
  }

  private static func zsh(_ verbs: [Verb]) -> String {
    var text = "#compdef seamesh\n_seamesh() {\n  local -a verbs\n  verbs=(\n"
    for verb in verbs { text += "    \(quoted("\(verb.name):\(verb.summary)"))\n" }
    text += "  )\n  if (( CURRENT == 2 )); then _describe verb verbs; return; fi\n  case $words[2] in\n"
    for verb in verbs {
      let arguments = verb.allOptions.map { quoted(zshOption($0)) } + zshOperands(verb)
      text += "    \(verb.name)) _arguments \(arguments.joined(separator: " ")) ;;\n"
    }
    return text + "  esac\n}\ncompdef _seamesh seamesh\n"
  }

  private static func zshOption(_ option: OptionSpecification) -> String {
    let summary = option.summary.replacing("[", with: "(").replacing("]", with: ")").replacing(":", with: ",")
    let head = "\(option.repeats ? "*" : "")--\(option.name)"
    return switch option.value {
    case .none: "\(head)[\(summary)]"
    case .text(let name): "\(head)=[\(summary)]:\(name):"
    case .object: "\(head)=[\(summary)]:JSON:"
    case .file(let name): "\(head)=[\(summary)]:\(name):_files"
    case .directory(let name): "\(head)=[\(summary)]:\(name):_files -/"
    case .choice(let name, let choices): "\(head)=[\(summary)]:\(name):(\(choices.joined(separator: " ")))"
    }
  }

  private static func zshOperands(_ verb: Verb) -> [String] {
    verb.operands.map { operand in
      let action =
        switch operand.kind {
        case .text, .partition, .collection: ""
        case .file: "_files"
        case .choice(let choices): "(\(choices.joined(separator: " ")))"
        }
      let repeats = operand.presence == .oneOrMore || operand.presence == .zeroOrMore
      return quoted("\(repeats ? "*" : ""):\(operand.name):\(action)")
    }
  }

  private static func fish(_ verbs: [Verb]) -> String {
    var text = "complete -c seamesh -f\n"
    for verb in verbs {
      text += "complete -c seamesh -n __fish_use_subcommand -a \(verb.name) -d \(quoted(verb.summary))\n"
    }
    for option in globalOptions { text += "complete -c seamesh \(fishOption(option))\n" }
    for verb in verbs {
      let condition = "-n '__fish_seen_subcommand_from \(verb.name)'"
      for option in verb.options { text += "complete -c seamesh \(condition) \(fishOption(option))\n" }
      if !choices(verb).isEmpty {
        text += "complete -c seamesh \(condition) -a \(quoted(choices(verb).joined(separator: " ")))\n"
      }
      if verb.operands.contains(where: { $0.kind == .file }) { text += "complete -c seamesh \(condition) -F\n" }
    }
    return text
  }

  private static func fishOption(_ option: OptionSpecification) -> String {
    let value =
      switch option.value {
      case .none: ""
      case .text, .object: " -x"
      case .file: " -r -F"
      case .directory: " -x -a '(__fish_complete_directories)'"
      case .choice(_, let choices): " -x -a '\(choices.joined(separator: " "))'"
      }
    return "-l \(option.name)\(value) -d \(quoted(option.summary))"
  }

  private static func choices(_ verb: Verb) -> [String] {
    verb.operands.flatMap { operand -> [String] in
      if case .choice(let choices) = operand.kind { choices } else { [] }
    }
  }

  private static func unique(_ options: [OptionSpecification]) -> [OptionSpecification] {
    options.reduce(into: []) { list, option in
      if !list.contains(where: { $0.name == option.name }) { list.append(option) }
    }
  }

  private static func quoted(_ text: String) -> String { "'" + text.replacing("'", with: "'\\''") + "'" }
}
