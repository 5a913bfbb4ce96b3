export type { SqliteDatabase, SqliteStatement, SqliteValue } from './client.js'
export { SqliteStoreError, type SqliteStoreErrorCode } from './errors.js'
export type { SqliteStoreOptions } from './options.js'
export { SqliteStore } from './sqlite-store.js'
