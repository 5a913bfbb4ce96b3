import { describeKind, IdempotencyError, type IdempotencyErrorCode } from './errors.js'

/**
 * Each misuse, and each reason why a run's signal aborts: what happened, and then what to do. `{name}` is one of the details. A code that
 * says several things has a row for each, `code: which`.
 */
const MISUSE = {
  transaction_nested:
    'A transaction of this run is already open. Await it first; do everything that belongs together inside it, with its `tx`.',
  transaction_committed:
    'A transaction of this run has already committed and completed its record. Do everything that belongs together in one ' +
    'transaction; use `step` for what must be committed earlier.',
  transaction_late:
    'The response was begun before the transaction, so it cannot depend on its COMMIT. Send it inside the function that is ' +
    'passed to `transaction`.',
  transaction_streamed:
    'The answer of the transaction is a stream, or was flushed, or is too large to be held, so it was rolled back: nothing may ' +
    'be sent before the COMMIT. Send one piece inside it, for example the id of what will be streamed.',
  operation_taken:
    'Another attempt holds this key, or has completed it, so this transaction was rolled back. Let the error pass, or answer what you ' +
    'like: the client gets what the record says.',
  mounted_twice:
    'This request has already passed the library, and would find its own claim in flight. Protect each route once: for the whole ' +
    'application or on the route, not both. What dispatches a request again, such as `methodOverride` of Hono, belongs in front of the ' +
    'library; another request that the handler sends to its own service needs a key of its own.',
  lease_lost: 'The lease of this idempotency key was lost: another attempt may be running. Stop.',
  run_failed:
    'The run of this idempotency key has ended as a failure, for example because a time limit responded. Stop.',
  step_in_transaction:
    'A step was begun while a `transaction` or a `store.step` of its run is open: each would wait for the other. Its work was not called. ' +
    'Take the step before, or await the transaction first.',
  step_late:
    'A step was begun after its run had ended, so its work was not called: its result could not be recorded. Await each step before ' +
    'the handler responds.',
  context_foreign:
    'The run of this context keeps its record in another store. Open the transaction with the store that was given to the ' +
    'middleware, the receiver or the runner of this run.',
  transaction_unanswered:
    'The work of the transaction resolved without an answer, so it was rolled back: the answer is stored with the effects. ' +
    'Move the line that sends it to the end of the function that is passed to `transaction`: `res.status(201).json(payout)`; on ' +
    'Fastify `reply.code(201).send(payout)`; on Koa `ctx.body = payout`; on NestJS the same of the response that `@Res()` injects. On ' +
    'Fetch and Hono, return the Response from it.',
  transaction_waiting:
    'The work of the transaction sent its response and then waited until the database ended the session, so it was rolled back. The ' +
    'response is sent after the COMMIT, which waits for the work: do not wait inside for `finish`, for the callback of `end`, or ' +
    'with `pipeline`.',
  transaction_asynchronous:
    'The work of the transaction returned a promise, so it was rolled back: on one connection, the statements of other requests ' +
    'would join it while it waits. Do asynchronous work before the transaction, and use the synchronous functions of the ' +
    'database inside it. Behind Fetch and Hono, return `reply(status, body)` in place of a Response, which cannot be read at once.',
  transaction_not_run:
    'The client reported a commit, but the work of the transaction was not called, had failed, or had not ended. Leave the commit to ' +
    'the store: no `trx.commit()` in the work. `transactions.transaction` must call the work and, if it rejects, roll back and reject.',
  transaction_left_behind:
    'The client has rejected this transaction, or called its work again, while the work was still running: it was rolled back, ' +
    'and what the work answers is discarded.',
  context_missing:
    'A transaction needs the context of a run, such as `req.idempotency`; seen: {seen}. A request without a key has none, and its ' +
    'response would be sent before COMMIT: give the middleware `required: true`, or open your own transaction for such requests.',
  transactions_missing: 'This store cannot open transactions: give {store} the option `transactions`.',
  effects_in_transaction:
    "`{call}` was called, but with `effects: 'in-transaction'` all effects are inside `transaction`: nothing is claimed before, and " +
    'nothing is recorded outside. Do it inside the work of `transaction`; for an operation that also calls others, use a middleware ' +
    'without that option, beside this one and with the same store.',
  transaction_timed_out:
    '{what}, so nobody waits for it any longer: it cannot commit any more, unless its COMMIT was sent before.',
  step_repeated:
    'A step {label} is running or has succeeded in this run, so its work was not called again. Each step needs its own label; in a ' +
    'loop, put the index into it.',
  step_limit:
    'An operation has at most {most} steps, so the work was not called. Put several calls into one step, or make several operations of it.',
  step_not_kept:
    'An earlier attempt has done the step {label}, but its result was not kept: it was larger than `maxStepBytes`, or the store had no ' +
    'room. The work was not called again. Return less from the step, such as the id of what it made.',
  'store_failed: step':
    'The store did not confirm in time that the step begins, or the result of an earlier one, so its work was not called.',
  'store_failed: renewal':
    'The store did not renew the lease in time, so the transaction was rolled back, and its work was not called. If the store and ' +
    '`transactions` have the same pool, give the store its own. If the client has a single connection, as PGlite has, the store can ' +
    "never send a command beside an open transaction: use `effects: 'in-transaction'`.",
  command_missing:
    'The store has no `{command}`, which is optional in your own store. Add it: what it does to a record is `{machineName}`, exported by ' +
    'once-per-key/core.',
} satisfies Partial<Record<IdempotencyErrorCode | `${IdempotencyErrorCode}: ${string}`, string>>

export function misuseError(
  row: keyof typeof MISUSE,
  details: Readonly<Record<string, string | number>> = {},
  cause?: unknown,
): IdempotencyError {
  const message = MISUSE[row].replace(/\{(\w+)\}/g, (text, name) => String(details[name] ?? text))
  return new IdempotencyError(row.split(':')[0] as IdempotencyErrorCode, message, { cause })
}

/** The same, of what is said with details. */
export const contextMissingError = (seen: unknown) => misuseError('context_missing', { seen: describeKind(seen) })

export const effectsInTransactionError = (call: string) => misuseError('effects_in_transaction', { call })

export const transactionTimedOutError = (what: string) => misuseError('transaction_timed_out', { what })

export const stepRepeatedError = (label: string) => misuseError('step_repeated', { label: JSON.stringify(label) })

export const stepLimitError = (most: number) => misuseError('step_limit', { most })

export const stepNotKeptError = (label: string) => misuseError('step_not_kept', { label: JSON.stringify(label) })

export const stepStoreFailedError = () => misuseError('store_failed: step')

export const renewalStoreFailedError = () => misuseError('store_failed: renewal')

/** `command`: which of the optional commands the store lacks. */
export const commandMissingError = (command: string, machineName = `machine.${command}`) =>
  misuseError('command_missing', { command, machineName })

export const mountedTwiceError = () => misuseError('mounted_twice')

export const transactionLateError = () => misuseError('transaction_late')

export const transactionStreamedError = () => misuseError('transaction_streamed')

export const transactionsMissingError = (store: string) => misuseError('transactions_missing', { store })

/** Thrown by a store's `finish` too, if the record was there: nothing of the transaction can be committed. */
export const operationTakenError = (cause?: unknown) => misuseError('operation_taken', {}, cause)

const OWN_ENTRY =
  'In another framework, import `idempotency` from its own entry: once-per-key (Express, Connect, node:http), once-per-key/fastify, ' +
  '/hono, /koa or /nest; once-per-key/fetch is for handlers that take a Request.'

/**
 * For what was mounted in another framework than its own, or called with something else: `args` are what it was called with. Express and
 * Connect get the error by `next`, their third argument, since Express 4 waits for no promise; others by what is thrown.
 *
 * @throws IdempotencyError `response_unsupported`
 */
export function refuseMount(what: string, [seen, , next]: readonly unknown[], instead = OWN_ENTRY): void {
  const message = `${what}; it was called with ${describeKind(seen)}, and nothing ran. ${instead}`
  const error = new IdempotencyError('response_unsupported', message)
  if (typeof next !== 'function') throw error
  next(error)
}

/**
 * For an `idempotency` that was called with what a framework gives to middleware or to a plugin, in place of its options.
 *
 * @throws IdempotencyError `response_unsupported`
 */
export function refuseFactory(what: string, args: readonly unknown[]): void {
  const isPlugin = typeof Object(args[0]).addHook === 'function'
  refuseMount(
    what,
    args,
    isPlugin ? OWN_ENTRY : 'It was mounted without having been called: write `app.use(idempotency({ store, scope }))`.',
  )
}
