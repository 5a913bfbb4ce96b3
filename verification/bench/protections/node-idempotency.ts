import type { Request } from 'express'
import { type Payout, sendPayout, type Work } from '../payout.js'
import { loadPeer } from '../peer-packages.js'
import type { Open, Protection } from '../protection.js'

interface Facts {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: unknown
}

interface NodeIdempotency {
  onRequest(facts: Facts): Promise<{ body: unknown; additional: { status: number; location: string } } | undefined>
  onResponse(facts: Facts, answer: { body: unknown; additional: unknown }): Promise<void>
}

interface RedisAdapter {
  connect(): Promise<void>
  disconnect(): Promise<void>
}

export const nodeIdempotencyMemory: Open = async (work) => {
  const { MemoryStorageAdapter } = loadPeer<{ MemoryStorageAdapter: new () => unknown }>(
    '@node-idempotency/storage-adapter-memory',
  )
  return protection(work, new MemoryStorageAdapter())
}

export const nodeIdempotencyRedis: Open = async (work, { redisPort }) => {
  const { RedisStorageAdapter } = loadPeer<{ RedisStorageAdapter: new (options: unknown) => RedisAdapter }>(
    '@node-idempotency/storage-adapter-redis',
  )
  const adapter = new RedisStorageAdapter({ url: `redis://127.0.0.1:${redisPort}` })
  await adapter.connect()
  return protection(work, adapter, () => adapter.disconnect())
}

/** The flow of its README in a binding of the least: the answer is stored, then sent. */
function protection(work: Work, adapter: unknown, close?: () => Promise<void>): Protection {
  const { Idempotency } = loadPeer<{ Idempotency: new (adapter: unknown) => NodeIdempotency }>('@node-idempotency/core')
  const peer = new Idempotency(adapter)
  return {
    handlers: [
      async (req, res) => {
        const facts = factsOf(req)
        let before: Awaited<ReturnType<NodeIdempotency['onRequest']>>
        try {
          before = await peer.onRequest(facts)
        } catch (error) {
          res.status(409).json({ error: String(error) })
          return
        }
        if (before !== undefined) return sendPayout(res, { ...before.additional, body: before.body } as Payout)
        const { status, location, body } = await work(req)
        await peer.onResponse(facts, { body, additional: { status, location } })
        sendPayout(res, { status, location, body })
      },
    ],
    ...(close && { close }),
  }
}

function factsOf({ method, path, headers, body }: Request): Facts {
  return { method, path, headers, body }
}
