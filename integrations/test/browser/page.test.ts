import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { freePort } from '../../../test/support/redis-server.js'
import { openPlayground, POLL, startBuilt } from './playground.js'

describe('what is wrong is told beside its field, and nothing is sent', () => {
  test.each([
    ['{ "amount": 1, }', 'This is not JSON yet'],
    ['[1]', 'Enter one JSON object'],
    ['', 'This is not JSON yet'],
  ])('the body %j', async (body, told) => {
    const playground = await openPlayground()
    const { page } = playground
    await page.locator('#body').fill(body)
    expect(await page.locator('#body-error').textContent()).toContain(told)
    await playground.story('send').click()
    expect(await page.evaluate('document.activeElement.id')).toBe('body')
    expect(await page.locator('#body').getAttribute('aria-invalid')).toBe('true')
    expect(await playground.requests()).toBe('for 0 requests')
    await page.getByRole('button', { name: 'Reset' }).click()
    expect(await page.locator('#body-error').textContent()).toBe('')
    await playground.play('send')
    expect(await playground.clients()).toEqual([['201 ran']])
  })

  test.each([
    ['', 'Enter a key'],
    ['x'.repeat(256), 'at most 255'],
    ['"quoted"', 'without quotes'],
  ])('the key %j', async (key, told) => {
    const playground = await openPlayground()
    await playground.useKey(key)
    expect(await playground.page.locator('#key-error').textContent()).toContain(told)
    await playground.story('send').click()
    expect(await playground.page.evaluate('document.activeElement.id')).toBe('key')
    expect(await playground.requests()).toBe('for 0 requests')
  })
})

test('a body that the service refuses is sent as it is written, and the refusal is shown', async () => {
  const playground = await openPlayground()
  await playground.page.locator('#body').fill('{ "amount": 0, "currency": "EUR" }')
  expect(await playground.play('send')).toMatch(/^The service refused it \(400 validation_failed\)/)
  expect(await playground.clients()).toEqual([['400 failed']])
  expect(await playground.record()).toEqual({ state: 'failed', attempt: '1', lit: ['failed'] })
  expect(await playground.runs()).toBe(0)
  await playground.page.locator('.chip').click()
  expect(await playground.page.locator('#exchange').textContent()).toContain('Too small')
})

describe('the curl line of a request', () => {
  test('run by a shell, gets the decision that the page would get: a replay', async () => {
    const playground = await openPlayground()
    const { page, context } = playground
    await context.grantPermissions(['clipboard-read', 'clipboard-write'])
    const reference = `it's $(echo "bad") \`echo bad\` \\ % ü 订单 !`
    await page.locator('#body').fill(JSON.stringify({ amount: 100, currency: 'EUR', reference }))
    await playground.useKey(`o'hara $HOME "${randomUUID()}" ü订 \\`)
    await playground.play('send')
    await page.locator('.chip').click()
    await page.getByRole('button', { name: 'Copy' }).click()
    await page.getByRole('button', { name: 'Copied' }).waitFor()
    const copied = await page.evaluate<string>('navigator.clipboard.readText()')
    expect(copied).toBe(await page.locator('.curl').textContent())
    const { status, head, body } = await runInShell(copied)
    expect(status).toBe(201)
    expect(head).toMatch(/^idempotent-replayed: true/im)
    expect(JSON.parse(body).reference).toBe(reference)
    await expect.poll(() => page.locator('#events').textContent(), POLL).toContain('replayed')
  })

  test('holds the change: another amount is mismatched there too', async () => {
    const playground = await openPlayground()
    await playground.choose({ takes: '0' })
    await playground.play('change')
    await playground.page.locator('.chip').last().click()
    const { status, body } = await runInShell((await playground.page.locator('.curl').textContent()) ?? '')
    expect([status, JSON.parse(body).code]).toEqual([409, 'mismatched'])
  })

  test('holds no header of the demo, where nothing of it was chosen', async () => {
    const playground = await openPlayground()
    await playground.choose({ takes: '0' })
    await playground.play('send')
    await playground.page.locator('.chip').click()
    const line = await playground.page.locator('.curl').textContent()
    expect(line).toContain('Idempotency-Key: ')
    expect(line).not.toContain('x-demo')
  })
})

test('a request shows the headers that matter, its body, and what they mean', async () => {
  const playground = await openPlayground()
  await playground.play('change')
  const { page } = playground
  await page.locator('.chip').last().click()
  const dialog = page.getByRole('dialog', { name: 'Request 2: 409 mismatched' })
  const text = (await dialog.textContent()) ?? ''
  for (const part of [
    'Idempotency-Key: ',
    '"amount": 51000',
    'HTTP 409',
    'x-should-retry: false',
    '"code": "mismatched"',
  ]) {
    expect(text).toContain(part)
  }
  await dialog.getByRole('button', { name: 'Close' }).click()
  await dialog.waitFor({ state: 'hidden' })
  await page.locator('.track .bar').first().click({ force: true })
  await page.getByRole('dialog', { name: 'Request 1: 201 ran' }).waitFor()
})

test('what the service answers is text, whatever it looks like', async () => {
  const playground = await openPlayground()
  const { page } = playground
  const markup = '<img src=x onerror=alert(1)>'
  await page.locator('#body').fill(JSON.stringify({ amount: 1, currency: 'EUR', reference: markup }))
  await playground.play('send')
  await page.locator('.chip').click()
  expect(await page.locator('#exchange').textContent()).toContain(markup)
  expect(await page.locator('#exchange img').count()).toBe(0)
})

test('a service that goes away is told, and heard again when it is back', async () => {
  const variables = { PORT: `${await freePort()}` }
  const first = await startBuilt(variables)
  const playground = await openPlayground({ origin: first.origin })
  first.child.kill('SIGKILL')
  await once(first.child, 'close')
  await playground.page.getByText('Reconnecting').waitFor()
  expect(await playground.play('send')).toMatch(/^The client got no response/)
  expect(await playground.clients()).toEqual([['no connection']])
  await startBuilt(variables)
  await playground.page.locator('#feed[data-state="live"]').waitFor()
  expect(await playground.play('again')).toMatch(/^The operation ran/)
  expect(await playground.runs()).toBe(1)
})

test('a page that nobody sees gives its feed back, and opens it when it is seen again', async () => {
  const { page } = await openPlayground()
  const show = (hidden: boolean) =>
    page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${hidden}, configurable: true })
      document.dispatchEvent(new Event('visibilitychange'))`)
  const given = page.waitForEvent('requestfailed', (request) => request.url().includes('/demo/feed'))
  await show(true)
  await given
  await page.locator('#feed[data-state="away"]').waitFor()
  await show(false)
  await page.locator('#feed[data-state="live"]').waitFor()
})

test('nothing but the service itself is asked for', async () => {
  const playground = await openPlayground()
  const { page } = playground
  const asked: string[] = []
  page.on('request', (request) => asked.push(new URL(request.url()).origin))
  await page.reload()
  await playground.play('again')
  expect(new Set(asked)).toEqual(new Set([new URL(page.url()).origin]))
})

test('the policy that the page is served with is in force', async () => {
  const { page, complaints } = await openPlayground()
  const added = page.addScriptTag({ content: 'document.title = "broken"' })
  await expect(added).rejects.toThrow(/Content Security Policy/)
  expect(await page.title()).toBe('Playground · once-per-key')
  expect(complaints.splice(0)).toMatchObject([expect.stringContaining('Content Security Policy')])
})

async function runInShell(line: string) {
  const { stdout } = await promisify(execFile)('/bin/sh', ['-c', line])
  const [head = '', body = ''] = stdout.split('\r\n\r\n')
  return { status: Number(head.split(' ')[1]), head, body }
}
