import ts from 'typescript'

/** One place where a file asks for another. */
export interface Import {
  readonly specifier: string
  /** Gone after compilation: no arrow at run time. */
  readonly typeOnly: boolean
}

const parsed = new Map<string, readonly Import[]>()

/** Every import of a file, in whatever form it is written. A text is read once. */
export function importsOf(fileName: string, text: string): readonly Import[] {
  const id = `${fileName}\n${text}`
  const known = parsed.get(id) ?? importsIn(fileName, text)
  parsed.set(id, known)
  return known
}

function importsIn(fileName: string, text: string): Import[] {
  const file = ts.createSourceFile(fileName, text, ts.ScriptTarget.Latest, true)
  const found: Import[] = [...file.typeReferenceDirectives, ...file.referencedFiles].map((reference) => {
    return { specifier: reference.fileName, typeOnly: true }
  })

  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node)) {
      add(node.moduleSpecifier, node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword)
    } else if (ts.isExportDeclaration(node) && node.moduleSpecifier !== undefined) {
      add(node.moduleSpecifier, node.isTypeOnly)
    } else if (ts.isImportEqualsDeclaration(node) && ts.isExternalModuleReference(node.moduleReference)) {
      add(node.moduleReference.expression, node.isTypeOnly)
    } else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
      add(node.argument.literal, true)
    } else if (ts.isCallExpression(node) && asksForModule(node.expression)) {
      add(node.arguments[0], false)
    } else if (ts.isModuleDeclaration(node) && ts.isStringLiteral(node.name)) {
      add(node.name, true)
    }
    ts.forEachChild(node, visit)
  }
  const add = (specifier: ts.Node | undefined, typeOnly: boolean): void => {
    const known = specifier !== undefined && ts.isStringLiteralLike(specifier)
    found.push({ specifier: known ? specifier.text : '(computed)', typeOnly })
  }

  visit(file)
  return found
}

/** Whether a file does nothing but pass on what other files export. */
export function onlyReExports(fileName: string, text: string): boolean {
  const { statements } = ts.createSourceFile(fileName, text, ts.ScriptTarget.Latest)
  return statements.every((statement) => ts.isExportDeclaration(statement) && statement.moduleSpecifier !== undefined)
}

function asksForModule(callee: ts.Expression): boolean {
  if (callee.kind === ts.SyntaxKind.ImportKeyword) return true
  if (ts.isIdentifier(callee)) return callee.text === 'require'
  return ts.isPropertyAccessExpression(callee) && /^(require|import\.meta)\.resolve$/.test(callee.getText())
}
