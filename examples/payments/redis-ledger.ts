import { setTimeout } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { inTime } from './in-time.js'
import { BooksUnavailable, type Entries, type Kind, type Ledger } from './ledger.js'
import { keptUntilMs, type Notes, notedBooks } from './noted-books.js'

/** For a whole transaction, races that it lost included. */
const PATIENCE_MS = 2_000

/**
 * Takes the writes if everything that was read is still as it was; absent is ''. KEYS: the entries that were read, then
 * those to write. ARGV: how many were read, what each was; then for each write its text, and until when it is kept.
 */
const COMMIT = `
local reads = tonumber(ARGV[1])
for i = 1, reads do
  if (redis.call('GET', KEYS[i]) or '') ~= ARGV[1 + i] then return 0 end
end
for i = reads + 1, #KEYS do
  local text = ARGV[2 * i - reads]
  local keptUntil = ARGV[2 * i - reads + 1]
  if text == '' then redis.call('DEL', KEYS[i])
  elseif keptUntil == '' then redis.call('SET', KEYS[i], text)
  else redis.call('SET', KEYS[i], text, 'PXAT', keptUntil) end
end
return 1
`

/** Books that several processes share. Their transactions are optimistic. */
export function redisLedger(redis: Redis, prefix = 'payments-books:'): Ledger {
  return {
    async transaction(merchantId, work) {
      const until = performance.now() + PATIENCE_MS
      while (true) {
        const { books, notes } = notedBooks(
          // One slot of a cluster for each merchant.
          (kind, id) => `${prefix}{${merchantId}}:${kind}:${id}`,
          async (key) => (await answered(() => redis.get(key), until, false)) ?? '',
        )
        const done = await work(books).then(
          (result) => ({ result, writes: notes.written }),
          (error: unknown) => ({ error, writes: new Map() }),
        )
        if ('error' in done && done.error instanceof BooksUnavailable) throw done.error
        // A refusal too holds only if what it rests on was true at one moment.
        if (await commit(notes.seen, done.writes, until)) {
          if ('error' in done) throw done.error
          return done.result
        }
        await setTimeout(Math.random() * 10)
      }
    },
  }

  /** `false`: another transaction was faster, and nothing was written. */
  async function commit(seen: Notes['seen'], writes: Notes['written'], until: number): Promise<boolean> {
    if (seen.size + writes.size === 0) return true
    const keys = [...seen.keys(), ...writes.keys()]
    const args = [`${seen.size}`, ...seen.values(), ...[...writes.values()].flatMap(asArguments)]
    const reply = await answered(() => redis.eval(COMMIT, keys.length, ...keys, ...args), until, writes.size > 0)
    return reply === 1
  }
}

function asArguments(entry: Entries[Kind] | undefined): [text: string, keptUntil: string] {
  if (entry === undefined) return ['', '']
  return [JSON.stringify(entry), `${keptUntilMs(entry) ?? ''}`]
}

async function answered<T>(command: () => Promise<T>, until: number, writes: boolean): Promise<T> {
  const leftMs = until - performance.now()
  if (leftMs <= 0) throw new BooksUnavailable('Too many races were lost', false)
  try {
    return await inTime(command(), leftMs)
  } catch (error) {
    // Of the client's error only the words: it holds the command, and so the entries.
    throw new BooksUnavailable(error instanceof Error ? error.message : 'unknown', writes)
  }
}
