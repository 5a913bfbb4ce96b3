export { IdempotencyError, type IdempotencyErrorCode } from '../core/index.js'
export { type InstrumentOptions, instrument } from './instrument.js'
