import { IdempotencyError, kindOf } from './errors.js'

/** Misuse of transactions. Each is thrown before anything was committed. */

export function contextMissing(seen: unknown): IdempotencyError {
  return new IdempotencyError(
    'context_missing',
    `A transaction needs the context of a run, such as \`req.idempotency\`; seen: ${kindOf(seen)}. A request without a key has ` +
      'none, and would be answered before its COMMIT: give the middleware `required: true`, or open a transaction of your own ' +
      'for such requests.',
  )
}

export function contextForeign(): IdempotencyError {
  return new IdempotencyError(
    'context_foreign',
    'The run of this context keeps its record in another store. Open the transaction with the store that was given to the ' +
      'middleware, the receiver or the runner of this run.',
  )
}

export function transactionsMissing(store: string): IdempotencyError {
  return new IdempotencyError(
    'transactions_missing',
    `This store cannot open transactions: give ${store} the option \`transactions\`.`,
  )
}

export function transactionNested(): IdempotencyError {
  return new IdempotencyError(
    'transaction_nested',
    'A transaction of this run is open already. Await the first, and do what belongs together inside of it, with its `tx`.',
  )
}

export function transactionCommitted(): IdempotencyError {
  return new IdempotencyError(
    'transaction_committed',
    'A transaction of this run has committed, and completed its record with it. Do what belongs together in one transaction; ' +
      'use `step` for what must be committed before.',
  )
}

export function transactionLate(): IdempotencyError {
  return new IdempotencyError(
    'transaction_late',
    'The response was begun before the transaction, so it cannot depend on its COMMIT. Answer inside the function that is ' +
      'given to `transaction`.',
  )
}

export function transactionUnanswered(): IdempotencyError {
  return new IdempotencyError(
    'transaction_unanswered',
    'The work of the transaction has resolved without an answer, so it was rolled back: the answer is stored with the effects. ' +
      'Move the line that answers, such as `res.status(201).json(payout)`, to the end of the function that is given to ' +
      '`transaction`; in a Fetch handler, return the Response from it.',
  )
}

export function transactionStreamed(): IdempotencyError {
  return new IdempotencyError(
    'transaction_streamed',
    'The answer of the transaction is a stream, or was flushed, or is too large to be held, so it was rolled back: nothing may ' +
      'be sent before the COMMIT. Answer in one piece inside of it, such as with the id of what is to be streamed.',
  )
}

export function transactionAsynchronous(): IdempotencyError {
  return new IdempotencyError(
    'transaction_asynchronous',
    'The work of the transaction returned a promise, so it was rolled back: on one connection, the statements of other requests ' +
      'would join it while it waits. Do what is asynchronous before the transaction, and use the synchronous functions of the ' +
      'database inside of it.',
  )
}

export function transactionNotRun(): IdempotencyError {
  return new IdempotencyError(
    'transaction_not_run',
    'The client said that the transaction was committed, but its work was not called, or had failed. `transactions.transaction` ' +
      'must call the work, reject when it rejects, and then roll back.',
  )
}
