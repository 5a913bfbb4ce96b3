import { join } from 'node:path'
import ts from 'typescript'
import type { Mutant } from './mutant.js'
import { plant, type Sources } from './planting.js'

interface Planted {
  readonly mutant: Mutant
  readonly path: string
  readonly text: string
}

/**
 * What the compiler says against planted faults. One that does not compile, or names what is no more, is found by whatever
 * breaks first, and shows nothing.
 */
export function compilerErrorsOf(mutants: readonly Mutant[], sources: Sources, root: string): string[] {
  const files = new Map([...sources].map(([path, text]) => [join(root, path), { version: 0, text }]))
  const service = ts.createLanguageService(hostOf(files, root))

  function put(path: string, text: string): void {
    const file = join(root, path)
    files.set(file, { version: (files.get(file)?.version ?? 0) + 1, text })
  }

  return batchesOf(mutants.map((mutant) => ({ mutant, ...plant(mutant, sources) }))).flatMap((batch) => {
    for (const { path, text } of batch) put(path, text)
    const errors = batch.flatMap(({ mutant, path }) => {
      const file = join(root, path)
      const diagnostics = [...service.getSyntacticDiagnostics(file), ...service.getSemanticDiagnostics(file)]
      return diagnostics.map(({ messageText }) => {
        return `${mutant.layer}, "${mutant.name}": ${ts.flattenDiagnosticMessageText(messageText, ' ')}`
      })
    })
    for (const { path } of batch) put(path, sources.get(path) as string)
    return errors
  })
}

/** No two of a batch are in one file: to set the compiler up takes longer than to check. */
function batchesOf(planted: readonly Planted[]): Planted[][] {
  const batches: Planted[][] = []
  for (const each of planted) {
    const batch = batches.find((others) => others.every(({ path }) => path !== each.path))
    if (batch === undefined) batches.push([each])
    else batch.push(each)
  }
  return batches
}

function hostOf(
  files: ReadonlyMap<string, { readonly version: number; readonly text: string }>,
  root: string,
): ts.LanguageServiceHost {
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root)
  const { fileExists, readFile, readDirectory, directoryExists, getDirectories } = ts.sys
  return {
    fileExists,
    readFile,
    readDirectory,
    directoryExists,
    getDirectories,
    getCompilationSettings: () => ({ ...options, noUnusedLocals: false, noUnusedParameters: false }),
    getScriptFileNames: () => [...files.keys()],
    getScriptVersion: (file) => `${files.get(file)?.version}`,
    getScriptSnapshot(file) {
      const text = files.get(file)?.text ?? ts.sys.readFile(file)
      return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text)
    },
    getCurrentDirectory: () => root,
    getDefaultLibFileName: ts.getDefaultLibFilePath,
  }
}
