import { readFileSync } from 'node:fs'
import ts from 'typescript'
import { expect, test } from 'vitest'

const FOLDER = new URL('../../src/webhooks/events/', import.meta.url)
const FILES = ['fields.ts', 'event.ts', 'mandate-setup-started.ts', 'merchant-updated.ts', 'onboarding-data.ts']

test('every field of an event has a docstring, and none an index signature', () => {
  const members = FILES.flatMap(membersIn)
  expect(members.map(({ name }) => name)).toContain('onboarding-data.ts IdDoc.validUntil')
  expect(members.length).toBeGreaterThan(110)
  expect(members.filter(({ documented }) => !documented).map(({ name }) => name)).toEqual([])
  expect(members.filter(({ isIndex }) => isIndex).map(({ name }) => name)).toEqual([])
})

interface Member {
  readonly name: string
  readonly documented: boolean
  readonly isIndex: boolean
}

/** The members of a file's exported interfaces. */
function membersIn(fileName: string): Member[] {
  const text = readFileSync(new URL(fileName, FOLDER), 'utf8')
  const file = ts.createSourceFile(fileName, text, ts.ScriptTarget.Latest, true)
  return file.statements.filter(isExportedInterface).flatMap((type) =>
    [type, ...type.members].map((node) => ({
      name: `${fileName} ${type.name.text}.${node.name?.getText(file) ?? ''}`,
      documented: ts.getJSDocCommentsAndTags(node).length > 0,
      isIndex: ts.isIndexSignatureDeclaration(node),
    })),
  )
}

function isExportedInterface(node: ts.Statement): node is ts.InterfaceDeclaration {
  return (
    ts.isInterfaceDeclaration(node) && node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) === true
  )
}
