// `npm run api`: writes the public types of each entry, without their docstrings, into api/. `-- --check` compares them with
// what is built. A change of the types needs a line of CHANGELOG.md that names what has changed.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import ts from 'typescript'

/** Of TypeScript: to name one of these is to name nothing. */
const KEYWORDS = new Set(
  'any boolean const extends false function interface never null number readonly string true type undefined unknown void'.split(
    ' ',
  ),
)

const args = process.argv.slice(2)
if (args.length > 1 || (args.length === 1 && args[0] !== '--check')) {
  console.error(
    `npm run api: unknown argument ${args.find((arg) => arg !== '--check') ?? args[1]}. There is one: --check`,
  )
  process.exit(1)
}
const { exports } = JSON.parse(readFileSync('package.json', 'utf8'))
const printer = ts.createPrinter({ removeComments: true })
/** What several entries export is shown with the first of these. */
const FIRST = ['./core', './http', './run', '.']
const entries = [...new Set([...FIRST, ...Object.keys(exports)])].filter((entry) => entry !== './package.json')
const files = entries.map((entry) => resolve(exports[entry].require.types))
const program = ts.createProgram(files, {
  module: ts.ModuleKind.NodeNext,
  target: ts.ScriptTarget.ES2022,
  types: ['node'],
})
const checker = program.getTypeChecker()

/** The report that shows a symbol. */
const homes = new Map()
const reports = new Map(entries.map((entry, i) => [reportOf(entry), publicTypes(files[i], reportOf(entry))]))
const written = new Map(
  existsSync('api') ? readdirSync('api').map((file) => [file, readFileSync(`api/${file}`, 'utf8')]) : [],
)
const changed = [...new Set([...reports.keys(), ...written.keys()])].filter(
  (file) => reports.get(file) !== written.get(file),
)

if (args[0] === '--check') {
  if (changed.length > 0)
    fail(`The public types have changed: ${changed.join(', ')}. Say so in CHANGELOG.md, and run npm run api.`)
} else {
  const unnamed = written.size === 0 ? [] : changed.filter((file) => !isNamed(file))
  if (unnamed.length > 0)
    fail(`No line of CHANGELOG.md's first section names what has changed in ${unnamed.join(', ')}.`)
  mkdirSync('api', { recursive: true })
  for (const file of changed) {
    if (reports.has(file)) writeFileSync(`api/${file}`, reports.get(file))
    else rmSync(`api/${file}`)
  }
}

function fail(message) {
  console.error(message)
  process.exit(1)
}

function reportOf(entry) {
  return `${entry === '.' ? 'index' : entry.slice(2).replaceAll('/', '-')}.txt`
}

/** Every declaration that the entry exports, by name; what these use without exporting it stands at the end. */
function publicTypes(file, report) {
  const source = program.getSourceFile(file)
  const shown = new Map()
  const inner = new Map()
  for (const symbol of checker.getExportsOfModule(checker.getSymbolAtLocation(source))) {
    const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
    shown.set(symbol.name, target)
  }
  const exported = new Set(shown.values())
  const texts = [...shown].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, symbol]) => shownOnce(name, symbol))
  for (const symbol of [...exported]) collect(symbol)
  const rest = [...inner].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, symbol]) => textOf(symbol))
  return `${[...texts, ...(rest.length > 0 ? ['Not exported:', ...rest] : [])].join('\n\n')}\n`

  function shownOnce(name, symbol) {
    const home = homes.get(symbol) ?? report
    homes.set(symbol, home)
    return home === report ? `${name}:\n${textOf(symbol)}` : `${name}: ${home}`
  }
  function collect(symbol) {
    for (const declaration of declarationsOf(symbol)) visit(declaration)
  }
  function visit(node) {
    if (ts.isIdentifier(node)) {
      const found = checker.getSymbolAtLocation(node)
      const target = found && found.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(found) : found
      const isTop =
        target &&
        declarationsOf(target).some(({ parent }) => ts.isSourceFile(parent) || ts.isVariableDeclarationList(parent))
      if (isTop && !exported.has(target) && !homes.has(target)) {
        homes.set(target, report)
        inner.set(target.name, target)
        collect(target)
      }
    }
    ts.forEachChild(node, visit)
  }
}

/** Those of this package: what Node and others declare is theirs. */
function declarationsOf(symbol) {
  return (symbol.declarations ?? []).filter((each) => /\/dist\/[^/]+\.d\.cts$/.test(each.getSourceFile().fileName))
}

function textOf(symbol) {
  return declarationsOf(symbol)
    .map((declaration) => printer.printNode(ts.EmitHint.Unspecified, declaration, declaration.getSourceFile()))
    .map((text) => text.replace(/^declare |^export /gm, ''))
    .join('\n')
}

/** Whether the newest section of the changelog names the entry, or in backticks something of a line that has changed. */
function isNamed(file) {
  const [, newest = ''] = readFileSync('CHANGELOG.md', 'utf8').split(/^## \[/m)
  const named = new Set((newest.match(/`[^`]+`/g) ?? []).flatMap((code) => code.match(/\w+/g) ?? []))
  const [before, after] = [written.get(file) ?? '', reports.get(file) ?? ''].map((text) => new Set(text.split('\n')))
  const lines = [...before, ...after].filter((line) => before.has(line) !== after.has(line))
  const words = lines.flatMap((line) => line.match(/\w+/g) ?? []).filter((word) => !KEYWORDS.has(word))
  return (
    newest.includes(`once-per-key/${file.replace('.txt', '').replaceAll('-', '/')}`) ||
    words.some((word) => named.has(word))
  )
}
