import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openPlayground, type Playground, POLL, startBuilt } from './playground.js'

describe('a story tells what happened: in bars, in the number, in the record, in a sentence', () => {
  test('send', async () => {
    const playground = await openPlayground()
    expect(await playground.record()).toEqual({ state: 'new', attempt: '–', lit: ['new'] })
    expect(await playground.play('send')).toMatch(/^The operation ran\./)
    expect(await playground.clients()).toEqual([['201 ran']])
    expect([await playground.runs(), await playground.requests()]).toEqual([1, 'for 1 request'])
    expect(await playground.record()).toEqual({ state: 'completed', attempt: '1', lit: ['completed'] })
    expect(await playground.bars('run').count()).toBe(1)
  })

  test('send again', async () => {
    const playground = await openPlayground()
    await playground.play('send')
    const told = await playground.play('again')
    expect(told).toBe("The second request got the first one's answer, byte for byte; nothing ran again.")
    expect(await playground.clients()).toEqual([['201 ran'], ['201 replayed']])
    expect([await playground.runs(), await playground.requests()]).toEqual([1, 'for 2 requests'])
    expect(await playground.page.locator('.scene-words').last().textContent()).toBe(told)
  })

  test('send again, where nothing was sent: it sends twice', async () => {
    const playground = await openPlayground()
    expect(await playground.play('again')).toMatch(/nothing ran again/)
    expect(await playground.clients()).toEqual([['201 ran', '201 replayed']])
  })

  test('change the amount', async () => {
    const playground = await openPlayground()
    await playground.play('send')
    expect(await playground.play('change')).toMatch(/^The key belongs to the first request\. With another amount/)
    expect(await playground.clients()).toEqual([['201 ran'], ['409 mismatched']])
    expect(await playground.runs()).toBe(1)
    expect(await playground.record()).toMatchObject({ state: 'completed', attempt: '1' })
  })

  test('ten at once', async () => {
    const playground = await openPlayground()
    expect(await playground.play('ten')).toMatch(/^Ten requests, one run\. Nine got 409 in flight/)
    const clients = await playground.clients()
    expect(clients).toHaveLength(10)
    expect(clients.filter((client) => client.join() === '201 ran')).toHaveLength(1)
    const polite = clients.filter((client) => client[0] === '409 in flight' && client.at(-1) === '201 replayed')
    expect(polite).toHaveLength(9)
    expect(await playground.runs()).toBe(1)
    expect(await playground.bars('replayed').count()).toBe(9)
  })

  test('send and hang up', async () => {
    const playground = await openPlayground()
    expect(await playground.play('hang-up')).toMatch(/^The client hung up, but the operation continued/)
    expect(await playground.clients()).toEqual([['hung up', '201 replayed']])
    expect(await playground.runs()).toBe(1)
    expect(await playground.record()).toMatchObject({ state: 'completed', attempt: '1' })
  })

  test('fail, then correct', async () => {
    const playground = await openPlayground()
    expect(await playground.play('fail')).toMatch(/^The first request failed with 400/)
    expect(await playground.clients()).toEqual([['400 failed', '201 ran']])
    expect(await playground.runs()).toBe(1)
    expect(await playground.record()).toMatchObject({ state: 'completed', attempt: '2' })
    const events = await playground.page.locator('#events li').allTextContents()
    expect(events.map((event) => event.replace(/^[\d.]+ s/, ''))).toEqual([
      'completed201',
      'claimedattempt 2 · after failed',
      'failed',
      'claimedattempt 1',
    ])
  })

  test('crash the owner', async () => {
    const playground = await openPlayground()
    const { page } = playground
    const played = playground.play('crash')
    await page.locator('.node.lit[data-state="in-flight"]').waitFor()
    expect(await page.locator('#sentence').textContent()).toMatch(/^The owner has its effect, and dies/)
    // Before anybody was answered, it has run.
    await expect.poll(playground.runs, POLL).toBe(1)
    const first = await leaseSeconds(playground)
    await expect.poll(() => leaseSeconds(playground), POLL).toBeLessThan(first)
    expect(first).toBeLessThanOrEqual(3)
    await page.locator('.node.lit[data-state="uncertain"]').waitFor()
    expect(await played).toMatch(/^The owner died after its effect, before its answer\./)
    const [client = []] = await playground.clients()
    expect([client[0], client.at(-1)]).toEqual(['gave up', '201 found'])
    expect(new Set(client.slice(1, -1))).toEqual(new Set(['409 in flight']))
    expect(await playground.runs()).toBe(1)
    expect(await playground.record()).toMatchObject({ state: 'completed', attempt: '2' })
    expect(await playground.play('again')).toMatch(/nothing ran again/)
  })

  test('crash the owner, where the handler looks in no books: it runs twice, and the story says why', async () => {
    const playground = await openPlayground()
    const { page } = playground
    await page.getByLabel('Naive').check()
    const told = await playground.play('crash')
    expect(told).toMatch(/^The owner died after its effect, before its answer\..* naive handler did not check/)
    const [client = []] = await playground.clients()
    expect([client[0], client.at(-1)]).toEqual(['gave up', '201 ran'])
    expect(await playground.runs()).toBe(2)
    expect(await page.locator('#count').getAttribute('data-runs')).toBe('many')
    expect(await playground.record()).toMatchObject({ state: 'completed', attempt: '2' })
    await page.locator('.chip').last().click()
    expect(await page.locator('.curl').textContent()).toContain("-H 'x-demo-handler: naive'")
  })

  test('ten at once, where the handler looks in no books: it runs once all the same', async () => {
    const playground = await openPlayground()
    await playground.page.getByLabel('Naive').check()
    expect(await playground.play('ten')).toMatch(/^Ten requests, one run/)
    expect(await playground.runs()).toBe(1)
  })

  test('crash the owner, where the effect commits with the record: there is one, and the story says why', async () => {
    const playground = await openPlayground({ origin: await startedOnFile() })
    const { page } = playground
    await page.getByLabel('In one transaction').waitFor()
    expect(await page.locator('#handler-hint').textContent()).toMatch(
      /commits together with the key’s record, or not at all/,
    )
    expect(await playground.play('crash')).toMatch(
      /^The owner died .* rolled back with its transaction, .* There is one effect\.$/,
    )
    const [client = []] = await playground.clients()
    expect([client[0], client.at(-1)]).toEqual(['gave up', '201 ran'])
    expect(await playground.runs()).toBe(1)
    expect(await playground.record()).toMatchObject({ state: 'completed', attempt: '2' })
    await page.getByLabel('Naive').check()
    expect(await playground.play('crash')).toMatch(/naive handler did not check, and ran again/)
    expect(await playground.runs()).toBe(2)
  })

  test('crash the owner, where one transaction takes the key too: the next request runs at once, and the story says why', async () => {
    const playground = await openPlayground({ origin: await startedOnFile() })
    const { page } = playground
    await page.getByLabel('No claim').check()
    expect(await playground.play('crash')).toMatch(/^The owner died before its COMMIT, .* no lease had to lapse\./)
    expect(await playground.clients()).toEqual([['gave up', '201 ran']])
    expect(await playground.runs()).toBe(1)
    expect(await playground.record()).toMatchObject({ state: 'completed', attempt: '1' })
    expect(await playground.play('ten')).toMatch(/^Ten requests, one run\./)
    expect(await playground.runs()).toBe(1)
    await page.locator('.chip').last().click()
    expect(await page.locator('.curl').textContent()).toContain("-H 'x-demo-handler: in-transaction'")
  })

  test('where the books are not in the database of the records, there is no choice without a claim', async () => {
    const { page } = await openPlayground()
    expect(await page.locator('#no-claim').isVisible()).toBe(false)
  })

  test.each([
    ['in memory', async () => ({})],
    ['in a file', async () => ({ origin: await startedOnFile() })],
  ])(
    'crash between steps, %s: the charge is resumed and not made again, whatever the form holds',
    async (_where, options) => {
      const playground = await openPlayground(await options())
      const { page } = playground
      await page.getByLabel('Naive').check()
      const played = playground.play('steps')
      // Before anybody was answered, it has charged.
      await expect.poll(playground.runs, POLL).toBe(1)
      expect(await played).toMatch(/attempt 2 resumed the step “charge” .* Three steps, one charge\.$/)
      expect(await page.locator('#operation').inputValue()).toBe('/api/service/order/create')
      const [client = []] = await playground.clients()
      expect([client[0], client.at(-1)]).toEqual(['gave up', '201 resumed'])
      expect(new Set(client.slice(1, -1))).toEqual(new Set(['409 in flight']))
      expect(await playground.runs()).toBe(1)
      expect(await playground.record()).toMatchObject({ state: 'completed', attempt: '2' })
      const events = await page.locator('#events li').allTextContents()
      const told = events.map((event) => event.replace(/^[\d.]+ s/, '')).filter((event) => event !== 'in flight')
      expect(told).toEqual([
        'completed201',
        'step donemail',
        'step doneship',
        'step resumedcharge',
        'claimedattempt 2 · after unknown',
        'step donecharge',
        'claimedattempt 1',
      ])
      expect(await playground.play('again')).toMatch(/nothing ran again/)
      expect(await playground.runs()).toBe(1)
    },
  )

  test('crash the owner, whose naive successor meets its effect: it is refused, and the story says what that means', async () => {
    const playground = await openPlayground()
    await playground.choose({ operation: '/api/service/order/expire' })
    await playground.page.getByLabel('Naive').check()
    expect(await playground.play('crash')).toMatch(/refused what it had done itself \(422 order_expired\)/)
    expect(await playground.runs()).toBe(1)
    expect(await playground.record()).toMatchObject({ state: 'uncertain', attempt: '2' })
  })
})

/** An example that keeps its records in a file. */
async function startedOnFile(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'playground-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return (await startBuilt({ SQLITE_FILE: join(folder, 'payments.db') })).origin
}

test('a race by hand: what is sent again while the first one runs is told to come back', async () => {
  const playground = await openPlayground()
  await playground.choose({ takes: '3000' })
  const first = playground.play('send')
  await playground.page.locator('.node.lit[data-state="in-flight"]').waitFor()
  await playground.story('again').click()
  await playground.page.getByText('409 in flight').first().waitFor()
  expect(await playground.story('ten').getAttribute('aria-disabled')).toBe('true')
  await first
  expect(await playground.clients()).toEqual([['201 ran'], ['409 in flight']])
  expect(await playground.runs()).toBe(1)
})

test('each story begins with a fresh key, unless it repeats one', async () => {
  const playground = await openPlayground()
  const key = () => playground.page.locator('#key').inputValue()
  await playground.play('send')
  const first = await key()
  await playground.play('again')
  expect(await key()).toBe(first)
  await playground.play('fail')
  expect(await key()).not.toBe(first)
  expect(await playground.clients()).toEqual([['400 failed', '201 ran']])
})

test('an own key is kept: after a reload its record is shown, and another merchant has it too', async () => {
  const key = `order ${randomUUID()} ü`
  const playground = await openPlayground()
  await playground.useKey(key)
  await playground.play('send')
  await playground.page.reload()
  await playground.useKey(key)
  await playground.page.locator('.node.lit[data-state="completed"]').waitFor()
  await expect.poll(playground.runs, POLL).toBe(1)
  expect(await playground.play('send')).toMatch(/^The request got the stored answer/)
  expect(await playground.play('ten')).toBe('The key already had its answer: all ten got it, and nothing ran again.')
  expect(await playground.runs()).toBe(1)
  await playground.choose({ merchant: 'mer_globex' })
  await playground.page.locator('.node.lit[data-state="new"]').waitFor()
  await playground.play('send')
  expect(await playground.clients()).toEqual([['201 ran']])
})

test('all 15 operations: the first request runs, the second replays, a changed one is refused, a corrected one runs', async () => {
  const playground = await openPlayground()
  const { page } = playground
  await playground.choose({ takes: '0' })
  const values = '[...document.querySelectorAll("#operation option")].map(({ value }) => value)'
  const paths = await page.evaluate<string[]>(values)
  expect(paths).toHaveLength(15)
  expect(await page.locator('#operation optgroup').count()).toBe(9)
  for (const path of paths) {
    await playground.choose({ operation: path })
    await playground.play('again')
    expect(await playground.story('change').locator('.story-title').textContent()).toMatch(/^Change the [a-z ]+$/)
    await playground.play('change')
    const words = (await playground.clients()).flat().map((chip) => chip.replace(/^20[01]/, '2xx'))
    expect([path, ...words]).toEqual([path, '2xx ran', '2xx replayed', '409 mismatched'])
    await playground.play('fail')
    const corrected = (await playground.clients()).flat().map((chip) => chip.replace(/^20[01]/, '2xx'))
    expect([path, ...corrected]).toEqual([path, '400 failed', '2xx ran'])
    expect(await playground.runs()).toBe(1)
  }
}, 120_000)

async function leaseSeconds({ page }: Playground): Promise<number> {
  return Number.parseFloat((await page.locator('#record-lease').textContent()) ?? '')
}
