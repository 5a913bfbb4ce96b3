import {
  createOperationEngine,
  type IdempotencyRecord,
  type OperationEngine,
  type RecordName,
  type Store,
} from 'once-per-key/core'
import {
  type AttemptName,
  createRequestEngine,
  type KnownOutcome,
  type Operator,
  singleTenant,
} from 'once-per-key/http'
import { MemoryStore } from 'once-per-key/memory'
import { REPLY_MS } from './limits.js'

/** Nobody listens to its events: what fails is thrown. */
const TERMS = { storeTimeoutMs: REPLY_MS, onEvent: () => {} }

/** The operator's commands, as the middleware has them. */
export function createOperatorCommands(store: Store): Pick<Operator, 'unknown' | 'resolve'> {
  return createRequestEngine({ store, scope: singleTenant, ...TERMS })
}

/**
 * Checks the arguments of `resolve` as it does itself, on a store without records.
 *
 * @throws IdempotencyError `arguments_invalid`.
 */
export async function assertResolution(name: AttemptName, outcome: KnownOutcome): Promise<void> {
  await createOperatorCommands(new MemoryStore()).resolve(name, outcome)
}

/** The record as it is stored: also with an answer that no request would be sent, such as one that is sealed. */
export function readRecord(store: Store, name: RecordName): Promise<IdempotencyRecord | null> {
  return createEngine(store).inspect(name)
}

export function createEngine(
  store: Store,
): Pick<OperationEngine, 'inspect' | 'listScopeRecords' | 'forget' | 'eraseScopeAnswers'> {
  return createOperationEngine({ store, ...TERMS })
}
