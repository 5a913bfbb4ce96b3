import { runInNewContext } from 'node:vm'
import { idempotency, singleTenant } from 'once-per-key'
import { safeListener } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { type RunnerEvent, runner } from 'once-per-key/run'
import { type Logger, pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { BINDINGS, type Binding, listen } from '../support/bindings.js'
import { deliver, receive } from '../support/deliveries.js'
import { traces } from '../support/traces.js'

class BankError extends Error {
  override readonly name = 'BankError'
  readonly code = 'bank_away'
  readonly #attempts = 3
  readonly config: object = { headers: { authorization: 'Bearer secret' } }
  get attempts(): number {
    return this.#attempts
  }
}

const thrown = () => new BankError('The bank is away.', { cause: new TypeError('fetch failed') })

const SHOWN = {
  name: 'BankError',
  message: 'The bank is away.',
  code: 'bank_away',
  stack: expect.stringContaining('errors-in-events.test.ts'),
  cause: {
    name: 'TypeError',
    message: 'fetch failed',
    stack: expect.stringContaining('errors-in-events.test.ts'),
  },
}

/** What a listener receives for an error. */
function told(error: unknown): { readonly error: unknown } {
  const events: { readonly error: unknown }[] = []
  safeListener((event: { readonly error: unknown }) => void events.push(event))({ error })
  return events[0] as { readonly error: unknown }
}

const parsed = (value: unknown) => JSON.parse(JSON.stringify(value))

describe('an event shows its error in JSON, with its stack and its causes', () => {
  test('of a handler of a webhook receiver', async () => {
    const { port, seen } = await receive(BINDINGS[0] as Binding, {
      handler: () => Promise.reject(thrown()),
    })
    await deliver(port)
    expect(parsed(await seen('handler_failed'))).toMatchObject({ type: 'handler_failed', error: SHOWN })
  })

  test('of a receiver that has no `next`', async () => {
    const { port, seen } = await receive(BINDINGS.find(({ name }) => name === 'node:http') as Binding, {
      mount: (receiver) => (req, res) => receiver(req, res),
      options: {
        verify() {
          throw thrown()
        },
      },
    })
    await deliver(port)
    const event = await seen('receiver_failed')
    expect(parsed(event)).toMatchObject({ error: { name: 'IdempotencyError', code: 'verify_failed', cause: SHOWN } })
  })

  test('of an option of a middleware, also on the diagnostics channel', async () => {
    const events: object[] = []
    const { events: published } = traces()
    const once = idempotency({
      store: new MemoryStore(),
      scope: singleTenant,
      onEvent: (event) => void events.push(event),
      isSuccess() {
        throw thrown()
      },
    })
    const { port, close } = await listen((req, res) => once(req, res, () => res.end('paid')))
    await fetch(`http://127.0.0.1:${port}`, { method: 'POST', headers: { 'Idempotency-Key': 'order-1' } })
    await close()
    const failure = expect.objectContaining({ type: 'option_failed', option: 'isSuccess', error: SHOWN })
    expect(parsed(events)).toContainEqual(failure)
    expect(parsed(published.map(({ event }) => event))).toContainEqual(failure)
  })

  test('of an option and of a result of a runner', async () => {
    const events: RunnerEvent[] = []
    const once = runner({
      store: new MemoryStore(),
      name: 'payouts',
      onEvent: (event) => void events.push(event),
      isCertainFailure() {
        throw thrown()
      },
      result: {
        encode(): string {
          throw thrown()
        },
        decode: String,
      },
    })
    await once({ scope: 'acme', key: 'order-1', input: 1 }, () => Promise.reject(new Error('no'))).catch(() => {})
    await once({ scope: 'acme', key: 'order-2', input: 1 }, () => 'paid')
    expect(parsed(events)).toContainEqual(expect.objectContaining({ type: 'option_failed', error: SHOWN }))
    expect(parsed(events)).toContainEqual(
      expect.objectContaining({ type: 'result_not_kept', error: expect.objectContaining({ stack: SHOWN.stack }) }),
    )
  })
})

describe('pino shows it', () => {
  const logged = (log: (logger: Logger) => void): unknown => {
    const lines: string[] = []
    log(pino({ base: null, timestamp: false }, { write: (line) => lines.push(line) }))
    return JSON.parse(lines[0] ?? '')
  }

  test('under any key', () => {
    const { error } = told(thrown())
    expect(logged((logger) => logger.error({ error }))).toMatchObject({ error: SHOWN })
  })

  test('under the key of its own serializer, without the requests and secrets that clients attach', () => {
    const { error } = told(thrown())
    const line = logged((logger) => logger.error({ err: error }))
    const message = 'The bank is away.: fetch failed'
    expect(line).toMatchObject({ err: { type: 'BankError', message, code: 'bank_away' } })
    expect(line).toMatchObject({ err: { stack: expect.stringContaining('caused by: TypeError') } })
    expect(JSON.stringify(line)).not.toContain('secret')
  })
})

describe('the error of an event', () => {
  test('is of the same class, and has the same members', () => {
    const { error } = told(thrown()) as { error: BankError }
    expect(error).toBeInstanceOf(BankError)
    expect(error).toMatchObject({ message: 'The bank is away.', code: 'bank_away' })
    expect(error.config).toEqual({ headers: { authorization: 'Bearer secret' } })
    expect(error.cause).toBeInstanceOf(TypeError)
  })

  test('is a copy: that of the application is left as it was', () => {
    const error = thrown()
    const before = Object.getOwnPropertyDescriptors(error)
    const copy = told(error).error
    expect(copy).not.toBe(error)
    expect(Object.getOwnPropertyDescriptors(error)).toEqual(before)
    expect(told(Object.freeze(thrown())).error).toBeInstanceOf(BankError)
  })

  test('may come from another realm', () => {
    expect(parsed(told(runInNewContext('new RangeError("too far")')))).toMatchObject({
      error: { name: 'RangeError', message: 'too far', stack: expect.any(String) },
    })
  })

  test('may have several errors, and be its own cause', () => {
    const error: Error = new AggregateError([new Error('IPv6'), 'IPv4'], '')
    error.cause = error
    const shown = parsed(told(error)).error
    expect(shown).toMatchObject({ name: 'AggregateError', errors: [{ message: 'IPv6' }, 'IPv4'] })
    expect(shown.cause.cause).toMatchObject({ name: 'AggregateError' })
  })

  test('is a DOMException, whose name and message are not its own', () => {
    expect(parsed(told(AbortSignal.abort().reason))).toMatchObject({ error: { name: 'AbortError', code: 20 } })
  })

  test('does not show what is attached as a cause that is not an error', () => {
    const error = new Error('no', { cause: { card: '4242' } })
    expect(parsed(told(error)).error.cause).toBe('an object (Object)')
  })

  test.each([['a text'], [7], [null], [{ code: 'declined' }]])('that is no Error is told as it is: %j', (value) => {
    expect(told(value)).toEqual({ error: value })
  })

  test('that cannot be read is told as such', () => {
    const error = Object.defineProperty(new Error('no'), 'message', {
      get() {
        throw new Error('The getter failed.')
      },
    })
    expect(parsed(told(error))).toMatchObject({ error: { name: 'Error', stack: expect.any(String) } })
  })
})
