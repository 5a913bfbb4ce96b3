import { expect, test, vi } from 'vitest'
import { asReplay, headersByName, isEventStream, isSuccessStatus, withKeptHeaders } from '../../src/core/answer.js'
import { answer } from '../support/request-facts.js'

const BY_DEFAULT = (_name: string, byDefault: boolean) => byDefault

function keptOf(names: readonly string[], keepHeader = BY_DEFAULT): string[] {
  const made = { ...answer(), headers: names.map((name) => [name, 'x'] as const) }
  return withKeptHeaders(made, keepHeader).headers.map(([name]) => name)
}

const HOP_BY_HOP = [
  'Connection',
  'Keep-Alive',
  'Proxy-Connection',
  'TE',
  'Trailer',
  'Transfer-Encoding',
  'Upgrade',
  'Proxy-Authenticate',
  'Proxy-Authorization',
]

test.each(HOP_BY_HOP)('%s belongs to one connection: no option keeps it', (name) => {
  const keepHeader = vi.fn(() => true)
  expect(keptOf([name, name.toLowerCase(), name.toUpperCase()], keepHeader)).toEqual([])
  expect(keepHeader).not.toHaveBeenCalled()
})

test('so does what Connection names', () => {
  const headers = [
    ['X-Hop', '1'],
    ['Connection', 'close, x-Hop'],
    ['x-hop', '2'],
    ['X-Other', '3'],
    ['connection', 'X-Third'],
    ['X-Third', '4'],
  ] as const
  expect(withKeptHeaders({ ...answer(), headers }, () => true).headers).toEqual([['X-Other', '3']])
})

test('a length that was handed over is kept: no option is asked', () => {
  const keepHeader = vi.fn(() => false)
  expect(keptOf(['Content-Length', 'content-length'], keepHeader)).toEqual(['Content-Length', 'content-length'])
  expect(keepHeader).not.toHaveBeenCalled()
})

test('the mark of a replay is never kept: an answer that was forwarded from one is marked once', () => {
  expect(keptOf(['Idempotent-Replayed', 'idempotent-replayed'], () => true)).toEqual([])
})

test('Date and Set-Cookie are kept only if an option says so', () => {
  expect(keptOf(['Date', 'Set-Cookie', 'DATE', 'set-cookie'])).toEqual([])
  expect(keptOf(['Date', 'Set-Cookie'], () => true)).toEqual(['Date', 'Set-Cookie'])
})

test('all else is kept under the names as written, in order, each line', () => {
  const names = ['Content-Type', 'link', 'Link', 'X-B', 'X-A', 'Location', 'ETag']
  expect(keptOf(names)).toEqual(names)
})

test('an option is given the name in lower case, and what the default would be', () => {
  const keepHeader = vi.fn((name: string) => name !== 'x-secret')
  expect(keptOf(['X-Secret', 'X-Open', 'Date'], keepHeader)).toEqual(['X-Open', 'Date'])
  expect(keepHeader.mock.calls).toEqual([
    ['x-secret', true],
    ['x-open', true],
    ['date', false],
  ])
})

test('a replay is the answer with a mark, and leaves the answer as it was', () => {
  const made = answer()
  expect(asReplay(made)).toEqual({ ...made, headers: [...made.headers, ['Idempotent-Replayed', 'true']] })
  expect(made).toEqual(answer())
})

test('lines of one name come together, under the name as it was first written', () => {
  const headers = [
    ['Link', '</a>'],
    ['ETag', '"1"'],
    ['link', '</b>'],
    ['LINK', '</c>'],
  ] as const
  expect([...headersByName(headers)]).toEqual([
    ['Link', ['</a>', '</b>', '</c>']],
    ['ETag', '"1"'],
  ])
})

test('success is 200 to 399 but 307 and 308: every status', () => {
  const statuses = Array.from({ length: 900 }, (_, i) => i + 100)
  const expected = statuses.filter((status) => status >= 200 && status < 400 && ![307, 308].includes(status))
  expect(statuses.filter(isSuccessStatus)).toEqual(expected)
})

test.each([
  { type: 'text/event-stream', is: true },
  { type: 'Text/Event-Stream; charset=utf-8', is: true },
  { type: ' text/event-stream ;x', is: true },
  { type: 'text/event-streams', is: false },
  { type: 'application/json; x=text/event-stream', is: false },
  { type: undefined, is: false },
  { type: 17, is: false },
])('$type is an event stream: $is', ({ type, is }) => {
  expect(isEventStream(type)).toBe(is)
})
