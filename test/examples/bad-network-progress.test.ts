import { stripVTControlCharacters } from 'node:util'
import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import { startProgress } from '../../examples/bad-network/progress.js'

afterEach(() => void vi.unstubAllEnvs())

test.each([
  [120, '████████████░░░░░░░░░░░░  50 %  200 of 400 payments, 0 s'],
  [40, '████████████░░░░░░░░░░░░  50 %  200'],
  [20, '█████░░░░░  50 %'],
])('a terminal of %d columns gets a bar that does not wrap', (columns, expected) => {
  const line = lastLine(columns)
  expect(line.trim()).toMatch(new RegExp(`^${expected}`))
  expect(line.length).toBeLessThan(columns)
})

test('a terminal that does not know its width gets the words, too', () => {
  expect(lastLine(0)).toContain('50 %  200 of 400 payments')
})

test('a file or a pipe gets a line for each quarter', () => {
  const { stream, written } = streamOf({ isTTY: false })
  const progress = startProgress(stream)
  for (const part of [0.1, 0.3, 0.4, 0.5, 1]) progress.tell(part, `${part}`)
  progress.end()
  expect(
    written()
      .split('\n')
      .map((line) => line.trim().split(',')[0]),
  ).toEqual(['25 %  0.3', '50 %  0.5', '100 %  1', ''])
})

function lastLine(columns: number): string {
  vi.stubEnv('NO_COLOR', '1')
  const { stream, written } = streamOf({ isTTY: true, columns })
  const progress = startProgress(stream)
  onTestFinished(progress.end)
  progress.tell(0.5, '200 of 400 payments')
  progress.note('Now')
  return stripVTControlCharacters(written()).split('\r').at(-1) ?? ''
}

function streamOf(terminal: object) {
  let text = ''
  const write = (chunk: string) => {
    text += chunk
  }
  return { stream: { ...terminal, write } as unknown as NodeJS.WriteStream, written: () => text }
}
