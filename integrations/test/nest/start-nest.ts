import 'reflect-metadata'
import type { INestApplication, Type } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { ExpressAdapter } from '@nestjs/platform-express'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import { onTestFinished } from 'vitest'

export const PLATFORMS = ['Express', 'Fastify'] as const
export type Platform = (typeof PLATFORMS)[number]

/** What a client sees. */
export interface Seen {
  readonly status: number
  readonly replayed: boolean
  readonly type: string | null
  readonly text: string
  readonly json: unknown
  readonly headers: Headers
}

/** A served application of Nest. */
export async function startNest(platform: Platform, module: Type, prepare: (app: INestApplication) => void = () => {}) {
  const adapter = platform === 'Express' ? new ExpressAdapter() : new FastifyAdapter()
  const app = await NestFactory.create(module, adapter, { logger: false, abortOnError: false })
  prepare(app)
  await app.listen(0, '127.0.0.1')
  onTestFinished(() => app.close())
  const origin = await app.getUrl()

  async function post(
    path: string,
    body: object,
    headers: Record<string, string> = {},
    signal?: AbortSignal,
  ): Promise<Seen> {
    const response = await fetch(origin + path, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers },
      body: JSON.stringify(body),
      signal: signal ?? null,
    })
    const text = await response.text()
    const replayed = response.headers.get('Idempotent-Replayed') === 'true'
    const seen = { status: response.status, replayed, type: response.headers.get('Content-Type'), text }
    return Object.defineProperty({ ...seen, json: parsed(text) }, 'headers', { value: response.headers }) as Seen
  }
  return { app, post }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
