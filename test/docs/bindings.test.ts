import ts from 'typescript'
import { expect, test } from 'vitest'
import { page, read } from './pages.js'

const bindings = page('docs/bindings.md')

test.each([
  ['once-per-key/core', 'src/core/index.ts', 50],
  ['once-per-key/core, for bindings', 'src/core.ts', 3],
  ['once-per-key/http', 'src/http/index.ts', 40],
] as const)('the page of bindings explains each name of %s', (_entry, path, least) => {
  const names = exportsOf(path)
  expect(names.length).toBeGreaterThanOrEqual(least)
  expect(names.filter((name) => !new RegExp(`\`${name}[\`(]`).test(bindings))).toEqual([])
})

function exportsOf(path: string): string[] {
  const { statements } = ts.createSourceFile(path, read(path), ts.ScriptTarget.Latest)
  return statements.flatMap((statement) => {
    const clause = ts.isExportDeclaration(statement) ? statement.exportClause : undefined
    if (clause === undefined) return []
    return ts.isNamespaceExport(clause) ? [clause.name.text] : clause.elements.map(({ name }) => name.text)
  })
}
