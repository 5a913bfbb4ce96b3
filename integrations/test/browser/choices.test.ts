import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { readFeed } from '../../../test/examples/feed-reader.js'
import { openPlayground, type Playground, POLL, ready, startBuilt } from './playground.js'

const NOTHING_SENT = 'This page has not sent anything with this key yet.'

describe('another key', () => {
  test.each([
    ['of the same merchant', ({ page }: Playground) => page.locator('#new-key').click()],
    ['of another merchant', ({ choose }: Playground) => choose({ merchant: 'mer_globex' })],
    ['for another operation', ({ choose }: Playground) => choose({ operation: '/api/service/fx/execute' })],
  ])('%s takes along what was told of the one before', async (_which, chooseOther) => {
    const playground = await openPlayground()
    await playground.play('again')
    await chooseOther(playground)
    await expect.poll(() => playground.page.locator('#sentence').textContent(), POLL).toBe(NOTHING_SENT)
    expect([await playground.runs(), await playground.requests()]).toEqual([0, 'for 0 requests'])
    expect(await playground.clients()).toEqual([])
  })

  test('while a story plays, is told nothing of it, and has its own scale of time', async () => {
    const playground = await openPlayground()
    const { page } = playground
    await playground.story('crash').click()
    await page.locator('.node.lit[data-state="in-flight"]').waitFor()
    await page.locator('#new-key').click()
    await page.locator('[data-playing]').waitFor({ state: 'detached' })
    expect(await page.locator('#sentence').textContent()).toBe(NOTHING_SENT)
    await playground.play('send')
    expect(await page.locator('.axis').textContent()).toBe('0 s0.5 s1 s1.5 s2 s')
  })

  test('that begins as the one before has runs of its own', async () => {
    const playground = await openPlayground()
    const start = `${randomUUID()} ü `.padEnd(254, 'x')
    for (const end of ['1', '2']) {
      await playground.useKey(start + end)
      expect(await playground.play('send')).toMatch(/^The operation ran/)
      expect(await playground.runs()).toBe(1)
    }
  })
})

test('a key of 255 characters is watched, however they are encoded', async () => {
  const playground = await openPlayground()
  await playground.useKey(randomUUID().padEnd(255 - 36, '-') + '😀'.repeat(36))
  await playground.play('send')
  await playground.page.locator('.node.lit[data-state="completed"]').waitFor()
  expect(await playground.page.locator('#feed').getAttribute('data-state')).toBe('live')
})

test('merchants that are chosen one after the other leave the samples of the last one', async () => {
  const playground = await openPlayground()
  const { page } = playground
  await playground.choose({ operation: '/api/service/customer/update' })
  let answerFirst = () => {}
  const held = new Promise<void>((resolve) => {
    answerFirst = resolve
  })
  await page.route('**/operations', async (route) => {
    const response = await route.fetch()
    if (route.request().headers().authorization === 'Bearer demo_globex') await held
    await route.fulfill({ response })
  })
  await playground.choose({ merchant: 'mer_globex' })
  const acmes = page.waitForResponse('**/operations')
  await playground.choose({ merchant: 'mer_acme' })
  await acmes
  const globexes = page.waitForResponse('**/operations')
  answerFirst()
  await globexes
  expect(await playground.play('send')).toMatch(/^The operation ran/)
})

test('who comes back to the page begins anew, whatever the browser remembers of its fields', async () => {
  const playground = await openPlayground()
  const { page } = playground
  await playground.useKey('mine')
  await page.goto(`${new URL(page.url()).origin}/health`)
  await page.goBack()
  await ready(page)
  expect(await page.getByLabel('Fresh for each story').isChecked()).toBe(true)
  expect(await page.locator('#key').inputValue()).not.toBe('mine')
  await playground.useKey(randomUUID())
  expect(await playground.play('send')).toMatch(/^The operation ran/)
})

test('a field with a long name makes no wide button', async () => {
  const playground = await openPlayground({ viewport: { width: 320, height: 740 } })
  const { page } = playground
  await page.evaluate('document.querySelector("#request").open = true')
  for (const length of [24, 25]) {
    await page.locator('#body').fill(JSON.stringify({ ['w'.repeat(length)]: 1 }))
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320)
  }
  expect(await playground.story('change').textContent()).toContain('Change the body')
})

test('the count says how many requests have no answer yet', async () => {
  const playground = await openPlayground()
  await playground.choose({ takes: '3000' })
  await playground.story('send').click()
  await expect.poll(playground.requests, POLL).toBe('for 1 request, 1 under way')
  await expect.poll(playground.requests, POLL).toBe('for 1 request')
  expect(await playground.runs()).toBe(1)
})

test('ten that do not all come while the first one runs are told as what they were', async () => {
  const playground = await openPlayground()
  const { page } = playground
  let sent = 0
  const ran = page.waitForResponse((response) => response.status() === 201)
  await page.route('**/payout/create', async (route) => {
    sent++
    if (sent > 5) await ran
    await route.continue()
  })
  expect(await playground.play('ten')).toMatch(/^Ten requests, one run\. Those that arrived while it ran/)
  expect(await playground.runs()).toBe(1)
})

test('where all feeds are taken, the page says so and works on, and has one when there is room', async () => {
  const { origin } = await startBuilt()
  const playground = await openPlayground({ origin })
  const { page } = playground
  const show = (hidden: boolean) =>
    page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${hidden}, configurable: true })
      document.dispatchEvent(new Event('visibilitychange'))`)
  await show(true)
  await page.locator('#feed[data-state="away"]').waitFor()
  const others = await Promise.all(Array.from({ length: 64 }, () => readFeed(origin, 'a')))
  await show(false)
  await page.getByText('Too many viewers').waitFor()
  expect(await playground.record()).toEqual({ state: 'not known', attempt: '–', lit: [] })
  expect(await playground.play('again')).toMatch(/nothing ran again/)
  expect(await playground.runs()).toBe(1)
  for (const other of others) other.leave()
  await page.locator('.node.lit[data-state="completed"]').waitFor()
})
