// A TypeScript compiler in a process of its own, where nothing counts coverage: a project and its options in, mistakes out.
// Its argument is the name under which the version is installed.
const { default: ts } = await import(process.argv[2])

const parsed = new Map()

process.on('message', ({ number, project, files, options, installed }) => {
  const host = hostFor(options, installed)
  const program = ts.createProgram({ rootNames: files.map((file) => `${project}/${file}`), options, host })
  const mistakes = mistakesIn(program, installed).map(({ file, start = 0, code, messageText }) => {
    const line = file === undefined ? 0 : file.getLineAndCharacterOfPosition(start).line + 1
    const name = file?.fileName.replace(`${project}/`, '')
    return `${name}:${line} TS${code} ${ts.flattenDiagnosticMessageText(messageText, '\n')}`
  })
  process.send?.({ number, mistakes })
})

/** As `getPreEmitDiagnostics`, but for what is installed: that is not looked through, for that takes most of the time. */
function mistakesIn(program, installed) {
  const ours = program.getSourceFiles().filter(({ fileName }) => !isIn(fileName, installed))
  return ts.sortAndDeduplicateDiagnostics([
    ...program.getConfigFileParsingDiagnostics(),
    ...program.getOptionsDiagnostics(),
    ...program.getGlobalDiagnostics(),
    ...ours.flatMap((file) => [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)]),
  ])
}

const isIn = (fileName, folders) => folders.some((folder) => fileName.startsWith(folder))

/** The compiler's own host, but what is installed is read once for each way to read it. */
function hostFor(options, installed) {
  const host = ts.createCompilerHost(options)
  const getSourceFile = (fileName, how, ...rest) => {
    if (!isIn(fileName, installed)) return host.getSourceFile(fileName, how, ...rest)
    const id = JSON.stringify([fileName, how, options.module, options.strict])
    if (!parsed.has(id)) parsed.set(id, host.getSourceFile(fileName, how, ...rest))
    return parsed.get(id)
  }
  return { ...host, getSourceFile }
}
