import ts from 'typescript'

/** A function that is longer than a reader can hold. */
export interface LongFunction {
  readonly name: string
  readonly lines: number
}

/** The functions of more than so many lines; texts of several lines, such as SQL, are tables and do not count. */
export function longFunctionsIn(fileName: string, text: string, mostLines: number): LongFunction[] {
  const file = ts.createSourceFile(fileName, text, ts.ScriptTarget.Latest, true)
  const found: LongFunction[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && 'body' in node && node.body !== undefined) {
      const lines = 1 + spanOf(node) - linesOfText(node)
      if (lines > mostLines) found.push({ name: node.name?.getText() ?? 'a function without a name', lines })
    }
    ts.forEachChild(node, visit)
  }
  visit(file)
  return found

  function spanOf(node: ts.Node): number {
    const lineAt = (position: number) => file.getLineAndCharacterOfPosition(position).line
    return lineAt(node.end) - lineAt(node.getStart())
  }

  function linesOfText(node: ts.Node): number {
    if (ts.isTemplateExpression(node) || ts.isNoSubstitutionTemplateLiteral(node)) return spanOf(node)
    let lines = 0
    ts.forEachChild(node, (child) => {
      lines += linesOfText(child)
    })
    return lines
  }
}
