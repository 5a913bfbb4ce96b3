import type { Answer } from 'once-per-key/core'
import { describe, expect, test, vi } from 'vitest'
import {
  groupHeadersByName,
  isEventStream,
  isSendable,
  isSuccessStatus,
  markAsReplay,
  toStoredAnswer,
} from '../../src/http/answer/answer.js'
import { answer } from '../support/request-facts.js'

const BY_DEFAULT = (_name: string, byDefault: boolean) => byDefault

function keptOf(names: readonly string[], keepHeader = BY_DEFAULT): string[] {
  const made = { ...answer(), headers: names.map((name) => [name, 'x'] as const) }
  return toStoredAnswer(made, keepHeader).headers.map(([name]) => name)
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
  expect(toStoredAnswer({ ...answer(), headers }, () => true).headers).toEqual([['X-Other', '3']])
})

describe('a length that was handed over', () => {
  const lengthsOf = (made: Answer) => toStoredAnswer(made, () => true).headers.map(([, value]) => value)
  const lengths = (...values: readonly string[]) => values.map((value) => ['Content-Length', value] as const)

  test("is kept where it is the body's: no option is asked", () => {
    const keepHeader = vi.fn(() => false)
    const made = { ...answer(200, 'paid'), headers: [...lengths('4'), ['content-length', '4'] as const] }
    expect(toStoredAnswer(made, keepHeader).headers).toEqual(made.headers)
    expect(keepHeader).not.toHaveBeenCalled()
  })

  test('is left out where it is another', () => {
    for (const value of ['3', '5', '4, 4', '04', '', 'x']) {
      expect(lengthsOf({ ...answer(200, 'paid'), headers: lengths(value) })).toEqual([])
    }
  })

  test('is kept where no body is sent: after HEAD, with 204 and 304', () => {
    expect(lengthsOf({ ...answer(200, ''), headers: lengths('1234') })).toEqual(['1234'])
    for (const status of [204, 304])
      expect(lengthsOf({ ...answer(status), headers: lengths('1234') })).toEqual(['1234'])
  })
})

describe('an answer that cannot be sent', () => {
  const headers = (...given: readonly (readonly [string, string])[]) => ({ headers: given })
  test.each<[string, Partial<Answer>]>([
    ['a status below 200', { status: 199 }],
    ['a status beyond 599', { status: 600 }],
    ['a reason with a line of its own', { statusMessage: 'OK\r\nX-Planted: 1' }],
    ['a reason that is not Latin-1', { statusMessage: '\u20ac' }],
    ['a header without a name', headers(['', 'x'])],
    ['a header whose name holds a blank', headers(['X Y', 'x'])],
    ['a header whose value begins another', headers(['X-A', 'x\r\nX-Planted: 1'])],
    ['a header whose value holds NUL', headers(['X-A', 'x\0'])],
    ['a header whose value is not Latin-1', headers(['X-A', '\u20ac'])],
  ])('is not kept: %s', (_name, fault) => {
    const made = { ...answer(), ...fault }
    expect(isSendable(made)).toBe(false)
    expect(toStoredAnswer(made, () => true)).toEqual({ ...made, body: null })
  })

  test.each([...HOP_BY_HOP, 'Idempotent-Replayed'])('holds %s, which is never kept', (name) => {
    for (const spelt of [name, name.toLowerCase()]) {
      const made = { ...answer(), ...headers([spelt, 'x']) }
      expect(isSendable(made)).toBe(false)
      expect(isSendable(toStoredAnswer(made, () => true))).toBe(true)
    }
  })

  test.each(['3', '5', '4, 4', '', 'x'])('has a length that is not its own: %s', (value) => {
    expect(isSendable({ ...answer(200, 'paid'), ...headers(['content-length', value]) })).toBe(false)
  })

  test('is none that handlers make', () => {
    const made = headers(['X-Latin-1', 'caf\u00e9 \u00ff'], ['X-Empty', ''], ['X-Tab', 'a\tb'])
    for (const status of [200, 204, 304, 404, 599]) {
      expect(isSendable({ ...answer(status, 'paid'), ...made, statusMessage: 'Gr\u00f6\u00dfe' })).toBe(true)
    }
  })
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
  expect(markAsReplay(made)).toEqual({ ...made, headers: [...made.headers, ['Idempotent-Replayed', 'true']] })
  expect(made).toEqual(answer())
})

test('lines of one name come together, under the name as it was first written', () => {
  const headers = [
    ['Link', '</a>'],
    ['ETag', '"1"'],
    ['link', '</b>'],
    ['LINK', '</c>'],
  ] as const
  expect([...groupHeadersByName(headers)]).toEqual([
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
