import type { Options } from 'tsup'
import ts from 'typescript'

type Plugin = NonNullable<Options['plugins']>[number]

/** Docstrings of class members stay in what esbuild writes. Editors take them from the types: here they are weight. */
export function withoutDocstrings(): Plugin {
  return {
    name: 'without docstrings',
    renderChunk: (code, { path }) => (/\.c?js$/.test(path) ? { code: withoutThem(code) } : undefined),
  }
}

function withoutThem(code: string): string {
  let kept = ''
  let from = 0
  for (const { pos, end } of docstringsIn(code)) {
    const line = code.lastIndexOf('\n', pos) + 1
    if (code.slice(line, pos).trim() !== '' || code[end] !== '\n') continue
    kept += code.slice(from, line)
    from = end + 1
  }
  return kept + code.slice(from)
}

function docstringsIn(code: string): ts.CommentRange[] {
  const source = ts.createSourceFile('chunk.js', code, ts.ScriptTarget.Latest, true, ts.ScriptKind.JS)
  const found = new Map<number, ts.CommentRange>()
  const look = (node: ts.Node): void => {
    for (const range of ts.getLeadingCommentRanges(code, node.pos) ?? []) {
      if (code.startsWith('/**', range.pos)) found.set(range.pos, range)
    }
    for (const child of node.getChildren(source)) look(child)
  }
  look(source)
  return [...found.values()].sort((a, b) => a.pos - b.pos)
}
