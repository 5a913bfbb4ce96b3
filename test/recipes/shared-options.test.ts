import type { IdempotencyEvent } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { expect, test } from 'vitest'
import { routes } from '../../examples/recipes/shared-options.js'
import { gate } from '../support/gate.js'
import { counted, served } from './served.js'

async function start(work?: () => unknown) {
  const events: IdempotencyEvent[] = []
  const [payout, conversion] = [counted(work), counted(work)]
  const { app, idle } = routes({
    store: new MemoryStore(),
    onEvent: (event) => events.push(event),
    createPayout: payout.handler,
    convert: conversion.handler,
  })
  let requests = 0
  const client = await served((req, res) => {
    requests++
    app(req, res)
  })
  return { ...client, requests: () => requests, idle, events, conversion, payout }
}

const conversion = { path: '/conversions' }

test('the key is optional on one route, and required on the other', async () => {
  const { post } = await start()
  expect(await post({ key: null })).toMatchObject({ status: 201 })
  const refused = await post({ ...conversion, key: null })
  expect([refused.status, JSON.parse(refused.text).code]).toEqual([400, 'key_missing'])
})

test('the routes share their records: a key is for one operation', async () => {
  const { post, events } = await start()
  await post()
  expect(JSON.parse((await post(conversion)).text).code).toBe('mismatched')
  expect(events.map(({ type }) => type)).toEqual(['claimed', 'completed', 'mismatched'])
})

test('a duplicate waits on one route for the answer that it is refused on the other', async () => {
  const { opened, open } = gate()
  const { post, requests, payout, conversion: conversions } = await start(() => opened)
  const first = [post(), post({ ...conversion, key: 'conversion-1' })]
  await expect.poll(() => payout.runs() + conversions.runs()).toBe(2)
  expect(await post()).toMatchObject({ status: 409 })
  let isAnswered = false
  const waiting = post({ ...conversion, key: 'conversion-1' }).finally(() => {
    isAnswered = true
  })
  await expect.poll(requests).toBe(4)
  expect(await post()).toMatchObject({ status: 409 })
  expect(isAnswered).toBe(false)
  open()
  expect(await waiting).toMatchObject({ status: 201, replayed: true })
  await Promise.all(first)
})

test.each([{ path: '/payouts' }, { path: '/conversions' }])('idle waits for a run on $path', async ({ path }) => {
  const { opened, open } = gate()
  const { post, payout, conversion: conversions, idle } = await start(() => opened)
  const order: string[] = []
  const answer = post({ path })
  await expect.poll(() => payout.runs() + conversions.runs()).toBe(1)
  const ended = idle().then(() => order.push('idle'))
  await new Promise(setImmediate)
  order.push('opened')
  open()
  await Promise.all([answer, ended])
  expect(order).toEqual(['opened', 'idle'])
})
