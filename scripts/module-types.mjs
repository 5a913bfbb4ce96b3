// Part of `npm run build`, behind the types of the CommonJS modules.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import ts from 'typescript'
import { argumentsOf } from './stages.mjs'

argumentsOf()

const { exports } = JSON.parse(readFileSync('package.json', 'utf8'))
const entries = Object.values(exports).filter((entry) => typeof entry === 'object') // Not ./package.json.

// The types of each ES module re-export those of its CommonJS twin. So nothing is in the package twice, and a class has one type
// however it is loaded.
for (const entry of entries) {
  const twin = entry.require.default.replace('./dist/', './')
  writeFileSync(entry.import.types, `export * from '${twin}'\n`)
}

// TypeScript 5.3 looks for the entry that exports a type only where the type is exported where it stands, and not by a list at the
// end of the file. Otherwise it cannot write the type into an application's declarations.
for (const file of readdirSync('dist').filter((name) => name.endsWith('.d.cts'))) {
  const isEntry = entries.some(({ require }) => require.types === `./dist/${file}`)
  const text = readFileSync(`dist/${file}`, 'utf8')
  writeFileSync(`dist/${file}`, exportedInPlace(text, isEntry))
}

/** `keepsNames`: a type that the list renames is left there, so that the file exports no other names than before. */
function exportedInPlace(text, keepsNames) {
  const source = ts.createSourceFile('types.d.cts', text, ts.ScriptTarget.Latest, true)
  const lists = source.statements.filter((each) => ts.isExportDeclaration(each) && !each.moduleSpecifier)
  const listed = lists.flatMap(({ exportClause }) => [...exportClause.elements])
  const given = new Set(listed.map(({ name }) => name.text))
  const byName = new Map(listed.map((each) => [(each.propertyName ?? each.name).text, each]))
  const changes = []
  for (const statement of source.statements) {
    const isType = [ts.isInterfaceDeclaration, ts.isTypeAliasDeclaration, ts.isClassDeclaration].some((is) =>
      is(statement),
    )
    const specifier = isType ? byName.get(statement.name.text) : undefined
    if (specifier === undefined) continue
    const isRenamed = specifier.propertyName !== undefined
    if (isRenamed && (keepsNames || given.has(statement.name.text))) continue
    changes.push({ from: statement.getStart(), to: statement.getStart(), text: 'export ' })
    if (!isRenamed) changes.push({ ...withComma(text, specifier), text: '' })
  }
  return changes
    .sort((a, b) => b.from - a.from)
    .reduce((changed, { from, to, text: put }) => changed.slice(0, from) + put + changed.slice(to), text)
}

function withComma(text, specifier) {
  const to = specifier.getEnd()
  return { from: specifier.getStart(), to: text[to] === ',' ? to + 1 : to }
}
