import type { Options } from 'tsup'
import type ts from 'typescript'

type Plugin = NonNullable<Options['plugins']>[number]

/** Docstrings of class members stay in what esbuild writes. Editors take them from the types: here they are weight. */
export function withoutDocstrings(): Plugin {
  return {
    name: 'without docstrings',
    async renderChunk(code, { path }) {
      if (!/\.c?js$/.test(path)) return undefined
      // Tests import this configuration, too, and build without it: the compiler is loaded when it is needed.
      const { default: compiler } = await import('typescript')
      return { code: withoutThem(code, compiler) }
    },
  }
}

function withoutThem(code: string, compiler: typeof ts): string {
  let kept = ''
  let from = 0
  for (const { pos, end } of docstringsIn(code, compiler)) {
    const line = code.lastIndexOf('\n', pos) + 1
    if (code.slice(line, pos).trim() !== '' || code[end] !== '\n') continue
    kept += code.slice(from, line)
    from = end + 1
  }
  return kept + code.slice(from)
}

function docstringsIn(code: string, compiler: typeof ts): ts.CommentRange[] {
  const { ScriptKind, ScriptTarget } = compiler
  const source = compiler.createSourceFile('chunk.js', code, ScriptTarget.Latest, true, ScriptKind.JS)
  const found = new Map<number, ts.CommentRange>()
  const look = (node: ts.Node): void => {
    for (const range of compiler.getLeadingCommentRanges(code, node.pos) ?? []) {
      if (code.startsWith('/**', range.pos)) found.set(range.pos, range)
    }
    for (const child of node.getChildren(source)) look(child)
  }
  look(source)
  return [...found.values()].sort((a, b) => a.pos - b.pos)
}
