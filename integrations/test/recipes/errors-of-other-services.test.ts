import { stat } from 'node:fs/promises'
import { get } from 'node:http'
import * as grpc from '@grpc/grpc-js'
import { badRequest, boomify } from '@hapi/boom'
import { BadRequestException, HttpException } from '@nestjs/common'
import { request as octokit } from '@octokit/request'
import axios from 'axios'
import express, { type RequestHandler } from 'express'
import express4 from 'express4'
import { errorCodes } from 'fastify'
import got from 'got'
import { HTTPException } from 'hono/http-exception'
import createError from 'http-errors'
import ky from 'ky'
import { ofetch } from 'ofetch'
import { idempotency } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import OpenAI from 'openai'
import Stripe from 'stripe'
import superagent from 'superagent'
import { Agent, interceptors, request as undici, errors as undiciErrors } from 'undici'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { served } from '../../../test/recipes/served.js'
import { listen, type Running } from '../../../test/support/bindings.js'

// The root's tests know what these packages throw: test/http/foreign-errors.test.ts.

/** Another service, which answers everything with 401, and a port where nobody listens. */
let mail: Running
let nobody: number

beforeAll(async () => {
  mail = await listen((_req, res) =>
    res
      .writeHead(401, { 'Content-Type': 'application/json', 'x-request-id': 'req_1' })
      .end('{"error":{"message":"no"}}'),
  )
  const gone = await listen(() => {})
  nobody = gone.port
  await gone.close()
})
afterAll(() => mail.close())

const at = (port: number) => `http://127.0.0.1:${port}`
const stripeAt = (port: number) =>
  new Stripe('sk_test_1', { host: '127.0.0.1', port, protocol: 'http', maxNetworkRetries: 0 })

const FOREIGN: Readonly<Record<string, () => unknown>> = {
  axios: () => axios.post(at(mail.port)),
  'axios, refused': () => axios.post(at(nobody)),
  'axios, aborted by a time limit': () => axios.post(at(mail.port), null, { signal: AbortSignal.abort() }),
  got: () => got.post(at(mail.port)),
  'got, refused': () => got.post(at(nobody), { retry: { limit: 0 } }),
  ky: () => ky.post(at(mail.port)),
  'ky, refused': () => ky.post(at(nobody), { retry: 0 }),
  ofetch: () => ofetch(at(mail.port), { method: 'POST' }),
  'ofetch, refused': () => ofetch(at(nobody), { method: 'POST' }),
  superagent: () => superagent.post(at(mail.port)),
  'superagent, its `response.error`': async () => {
    throw (await superagent.post(at(mail.port)).ok(() => true)).error
  },
  undici: () => undici(at(mail.port), { dispatcher: new Agent().compose(interceptors.responseError()) }),
  'undici, refused': () => undici(at(nobody)),
  'undici, a time limit': async () => {
    throw Object.assign(new undiciErrors.HeadersTimeoutError(), { status: 408 })
  },
  'fetch, refused': () => fetch(at(nobody)),
  'fetch, whose response is the cause': async () => {
    throw Object.assign(new Error('no mail', { cause: await fetch(at(mail.port)) }), { status: 401 })
  },
  'node:http, refused': () => new Promise((_, reject) => get(at(nobody)).on('error', reject)),
  'node:fs': () => stat('no-such-receipt.pdf'),
  Stripe: () => stripeAt(mail.port).paymentIntents.retrieve('pi_1'),
  'Stripe, refused': () => stripeAt(nobody).paymentIntents.retrieve('pi_1'),
  openai: () => new OpenAI({ apiKey: 'sk', baseURL: at(mail.port), maxRetries: 0 }).models.list(),
  Octokit: () => octokit('POST /', { baseUrl: at(mail.port) }),
  gRPC: () =>
    new Promise((_, reject) => {
      const client = new grpc.Client(`127.0.0.1:${nobody}`, grpc.credentials.createInsecure())
      const bytes = (value: Buffer) => value
      client.makeUnaryRequest('/a/B', bytes, bytes, Buffer.alloc(0), (error) => {
        client.close()
        reject(error)
      })
    }),
  'http-errors around axios': async () => {
    throw createError(400, (await thrownBy(() => axios.post(at(mail.port)))) as Error)
  },
  'Boom around axios': async () => {
    throw boomify((await thrownBy(() => axios.post(at(mail.port)))) as Error, { statusCode: 400 })
  },
  'Boom with axios’ error as its data': async () => {
    throw badRequest('no', await thrownBy(() => axios.post(at(mail.port))))
  },
  'Nest with the cause': async () => {
    throw new BadRequestException('no', { cause: await thrownBy(() => got.post(at(mail.port))) })
  },
  'Nest with axios’ response': async () => {
    const { response } = (await thrownBy(() => axios.post(at(mail.port)))) as { response: { status: number } }
    throw new HttpException(response, response.status)
  },
  'Hono with the cause': async () => {
    throw new HTTPException(401, { cause: await thrownBy(() => ky.post(at(mail.port))) })
  },
  'Hono with the response': async () => {
    throw new HTTPException(401, { res: await fetch(at(mail.port)) })
  },
}

const OWN: Readonly<Record<string, () => unknown>> = {
  'http-errors': () => createError(402, 'declined', { headers: { 'X-Why': 'limit' } }),
  Boom: () => badRequest('declined', { limit: 100 }),
  Nest: () => new BadRequestException({ message: 'declined', statusCode: 400 }),
  'Nest, with a description': () => new BadRequestException('declined', { description: 'limit' }),
  Hono: () => new HTTPException(402, { message: 'declined' }),
  'Hono, with a response of its own': () => new HTTPException(402, { res: Response.json({ declined: true }) }),
  Fastify: () => new errorCodes.FST_ERR_VALIDATION('declined'),
}

async function thrownBy(work: () => unknown): Promise<unknown> {
  try {
    await work()
  } catch (error) {
    return error
  }
  throw new Error('Nothing was thrown.')
}

/** What the second attempt is told where the first one has thrown, and an error handler answered 401 or the error's own status. */
async function toldAfter(make: typeof express, work: () => unknown, answer?: express.ErrorRequestHandler) {
  const told: unknown[] = []
  const once = idempotency({ store: new MemoryStore(), scope: () => 'acme', onEvent() {} })
  const handler: RequestHandler = (req, res, next) => {
    if (told.push(req.idempotency?.previousOutcome) > 1) return void res.end('paid')
    Promise.resolve().then(work).catch(next)
  }
  const app = make().set('env', 'test').post('/payouts', express.json(), once, handler)
  if (answer !== undefined) app.use(answer)
  const { post } = await served(app)
  const { status } = await post()
  await once.idle()
  await post()
  return { status, told: told[1] }
}

const with401: express.ErrorRequestHandler = (_error, _req, res, _next) => void res.status(401).end()

describe.each([
  ['Express 5', express],
  ['Express 4', express4 as unknown as typeof express],
])('on %s', (_name, make) => {
  test.each(Object.entries(FOREIGN))('the error of %s leaves the outcome unknown', async (_of, work) => {
    expect(await toldAfter(make, work, with401)).toEqual({ status: 401, told: 'unknown' })
    expect(await toldAfter(make, work)).toMatchObject({ told: 'unknown' })
  })

  test.each(Object.entries(OWN))('the error of %s is a refusal', async (_of, errorOf) => {
    const throws = () => {
      throw errorOf()
    }
    expect(await toldAfter(make, throws, with401)).toEqual({ status: 401, told: 'failed' })
  })
})
