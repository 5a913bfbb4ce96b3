import { oneTransaction } from './one-transaction-suite.js'

await oneTransaction('directly')
