import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { payoutHandler, type Work } from './payout.js'
import type { Open } from './protection.js'
import { MERCHANT } from './protection.js'
import { openIoredis } from './redis-commands.js'

/** A package of an earlier version (`npm pack`), to be measured beside this one. */
const TARBALL = process.env.BENCH_EARLIER
const FOLDER = join(process.cwd(), 'build/bench/earlier')

export const earlierLabel = TARBALL === undefined ? undefined : 'once-per-key, earlier'

export function installEarlier(): void {
  if (TARBALL === undefined) return
  mkdirSync(FOLDER, { recursive: true })
  writeFileSync(join(FOLDER, 'package.json'), '{ "private": true }')
  const args = ['install', '--prefix', FOLDER, '--no-audit', '--no-fund', '--omit=peer', resolve(TARBALL)]
  execFileSync('npm', args, { stdio: ['ignore', 'ignore', 'inherit'] })
}

export const earlierMemory: Open = async (work) => {
  const { MemoryStore } = load('once-per-key/memory')
  return protection(new MemoryStore({ maxBytes: 8 * 2 ** 30, maxEntries: 4_000_000 }), work)
}

export const earlierIoredis: Open = async (work, { redisPort }) => {
  const { RedisStore } = load('once-per-key/redis')
  const { client, close } = await openIoredis(redisPort)
  return protection(new RedisStore({ client }), work, close)
}

// biome-ignore lint/suspicious/noExplicitAny: another version's exports
function load(entry: string): any {
  return createRequire(join(FOLDER, 'package.json'))(entry)
}

function protection(store: unknown, work: Work, closeClient?: () => Promise<unknown>) {
  const { idempotency } = load('once-per-key')
  const once = idempotency({ store, scope: (req: { get(name: string): string }) => req.get(MERCHANT) })
  return {
    handlers: [once, payoutHandler(work)],
    async close() {
      await once.idle()
      await closeClient?.()
    },
  }
}
