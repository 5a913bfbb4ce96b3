export type { MySqlCallbackPool, MySqlPool, MySqlPromisePool } from './client.js'
export { MySqlStoreError, type MySqlStoreErrorCode } from './errors.js'
export { MySqlStore } from './mysql-store.js'
export type { MySqlStoreOptions, SchemaOptions } from './options.js'
