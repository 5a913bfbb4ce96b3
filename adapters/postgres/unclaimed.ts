import type { Unclaimed } from '../../src/core/index.js'
import { type Row, readDone, readFenced, readLooked } from './reply.js'
import type { Statement } from './statement.js'
import type { Statements } from './statements.js'

/** The commands of runs whose transactions take their keys, each sent outside of a transaction. */
export function unclaimedOn(send: (statement: Statement) => Promise<Row>, statements: Statements): Unclaimed {
  return {
    look: async (key, looking) => readLooked(await send(statements.look(key, looking))),

    async fence(key, asker) {
      const row = await send(statements.fence(key, asker, false))
      // Above READ COMMITTED the record must be read by a statement of its own, which begins when the lock was found free.
      return readFenced(row.reply === 'again' ? await send(statements.fence(key, asker, true)) : row)
    },

    withhold: async (key, own) => readDone(await send(statements.withhold(key, own))),
  }
}
