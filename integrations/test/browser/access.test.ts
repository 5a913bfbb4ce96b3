import axe from 'axe-core'
import { describe, expect, test } from 'vitest'
import { openPlayground, type Playground, type PlaygroundOptions, POLL, ready } from './playground.js'

const PHONE = { width: 375, height: 740 }

describe('axe finds nothing', () => {
  test.each([
    ['light', { colorScheme: 'light' }],
    ['dark', { colorScheme: 'dark' }],
    ['a phone', { viewport: PHONE, colorScheme: 'light' }],
    ['a phone in the dark', { viewport: PHONE, colorScheme: 'dark' }],
  ] as const)(
    '%s: before and after stories, with a request open, and with mistakes',
    async (_name, options: PlaygroundOptions) => {
      const playground = await openPlayground(options)
      expect(await findings(playground)).toEqual([])
      await playground.play('fail')
      await playground.play('change')
      expect(await findings(playground)).toEqual([])
      await playground.play('ten')
      await playground.play('change')
      expect(await findings(playground)).toEqual([])
      await playground.page.locator('.chip').last().click()
      expect(await findings(playground)).toEqual([])
      await playground.page.keyboard.press('Escape')
      await openRequest(playground)
      await playground.page.locator('#body').fill('{')
      await playground.story('send').hover()
      expect(await findings(playground)).toEqual([])
    },
  )

  test('while a story plays', async () => {
    const playground = await openPlayground()
    await playground.choose({ takes: '3000' })
    const played = playground.play('send')
    await playground.page.locator('.node.lit[data-state="in-flight"]').waitFor()
    expect(await findings(playground)).toEqual([])
    await played
  })
})

describe('by keyboard alone', () => {
  test('a story is played, a request opened and closed, and the focus comes back', async () => {
    const playground = await openPlayground()
    const { page } = playground
    await tabTo(page, 'document.activeElement.dataset.story === "again"')
    await page.keyboard.press('Enter')
    await page.locator('.chip[data-decision="replayed"]').waitFor()
    await tabTo(page, 'document.activeElement.dataset.decision === "replayed"')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'Request 2: 201 replayed' }).waitFor()
    expect(await page.evaluate('document.activeElement.closest("dialog") !== null')).toBe(true)
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
    expect(await page.evaluate('document.activeElement.dataset.decision')).toBe('replayed')
  })

  test('everything is reached in its order, and nothing holds the focus', async () => {
    const playground = await openPlayground()
    const { page } = playground
    await playground.play('again')
    await page.locator('.skip').focus()
    const seen: string[] = []
    const name =
      '(({ id, dataset, className, tagName }) => id || dataset.story || className || tagName)(document.activeElement)'
    for (let i = 0; i < 60 && seen.at(-1) !== 'BODY'; i++) {
      await page.keyboard.press('Tab')
      seen.push(await page.evaluate<string>(name))
    }
    expect(seen).toEqual([
      'theme',
      ...['send', 'again', 'change', 'ten', 'hang-up', 'fail', 'crash', 'steps'],
      ...['SUMMARY', 'operation', 'merchant', 'takes', 'INPUT', 'INPUT', 'key', 'new-key', 'reset-body', 'body'],
      ...['events-scroll', 'chip', 'chip', 'BODY'],
    ])
  })

  test('the link at the top leads past the head', async () => {
    const { page } = await openPlayground()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.keyboard.press('Tab')
    expect(await page.evaluate('document.activeElement.dataset.story')).toBe('send')
  })

  test('what has the focus shows it', async () => {
    const { page } = await openPlayground()
    for (let i = 0; i < 20; i++) {
      await page.keyboard.press('Tab')
      const outline = 'getComputedStyle(document.activeElement).outlineStyle'
      expect(await page.evaluate(`document.activeElement === document.body ? "solid" : ${outline}`)).not.toBe('none')
    }
  })
})

describe.each([320, 375, 768, 1_024, 1_920])('%d px wide', (width) => {
  test('nothing is cut off, and nothing scrolls sideways', async () => {
    const playground = await openPlayground({ viewport: { width, height: 740 } })
    const { page } = playground
    const overflow = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'
    expect(await page.evaluate(overflow)).toBe(0)
    await playground.play('ten')
    expect(await page.evaluate(overflow)).toBe(0)
    expect(await page.evaluate(CUT_OFF)).toEqual([])
    await page.locator('.chip').last().click()
    expect(await page.evaluate(overflow)).toBe(0)
  })

  test('everything that can be pressed is 24 px high and wide at least', async () => {
    const playground = await openPlayground({ viewport: { width, height: 740 } })
    await openRequest(playground)
    await playground.play('again')
    expect(await playground.page.evaluate(SMALL)).toEqual([])
  })
})

test('on a phone, a story that is played brings its result into sight', async () => {
  const playground = await openPlayground({ viewport: PHONE })
  await playground.play('again')
  const top = 'document.querySelector("#count").getBoundingClientRect().top'
  await expect.poll(() => playground.page.evaluate<number>(top), POLL).toBeLessThan(PHONE.height / 2)
})

test('what is shown does not jump when results arrive', async () => {
  const playground = await openPlayground()
  const { page } = playground
  await page.evaluate(WATCH_SHIFTS)
  for (const id of ['send', 'again', 'change', 'crash', 'ten']) await playground.play(id)
  expect(await page.evaluate<number>('window.shifted')).toBeLessThan(0.01)
})

describe('colours', () => {
  test('follow the system, until somebody chooses; the choice is remembered', async () => {
    const playground = await openPlayground({ colorScheme: 'dark' })
    const { page } = playground
    expect(await brightness(page)).toBeLessThan(60)
    await page.emulateMedia({ colorScheme: 'light' })
    expect(await brightness(page)).toBeGreaterThan(200)
    await page.getByRole('button', { name: 'Dark colours' }).click()
    expect(await brightness(page)).toBeLessThan(60)
    await page.reload()
    await ready(page)
    expect(await brightness(page)).toBeLessThan(60)
    await page.getByRole('button', { name: 'Light colours' }).click()
    expect(await brightness(page)).toBeGreaterThan(200)
  })

  test.each(['none', 'active'] as const)(
    'are never alone (forced colours: %s): each decision has its own shape and word',
    async (forcedColors) => {
      const { page } = await openPlayground({ forcedColors })
      const shapes = await page.evaluate<string[]>(
        '[...document.querySelectorAll(".swatch")].map((swatch) => { const { backgroundImage, borderStyle, backgroundColor, borderColor } = getComputedStyle(swatch); return [backgroundImage.replace(/(rgb|color|light-dark)[^)]*\\)/g, ""), borderStyle, backgroundColor === borderColor].join() })',
      )
      expect(new Set(shapes).size).toBe(shapes.length)
      expect(new Set(await page.locator('.legend-word').allTextContents()).size).toBe(shapes.length)
    },
  )
})

test('motion is off where it is not wanted, and quiet elsewhere', async () => {
  const { page } = await openPlayground()
  const moving = 'document.querySelector(".story").computedStyleMap().get("transition-duration").toString()'
  expect(await page.evaluate(moving)).toBe('0s')
  await page.emulateMedia({ reducedMotion: 'no-preference' })
  expect(await page.evaluate(moving)).toContain('0.16s')
})

test('outcomes are announced', async () => {
  const playground = await openPlayground()
  const told = await playground.play('again')
  expect(await playground.page.getByRole('status').filter({ hasText: told }).count()).toBe(1)
})

async function findings({ page }: Playground): Promise<string[]> {
  await page.evaluate(axe.source)
  const { violations } = await page.evaluate<axe.AxeResults>('axe.run(document)')
  return violations.flatMap(({ id, impact, nodes }) => nodes.map(({ target }) => `${impact} ${id}: ${target}`))
}

async function openRequest({ page }: Playground): Promise<void> {
  await page.evaluate('document.querySelector("#request").open = true')
}

async function tabTo(page: Playground['page'], condition: string): Promise<void> {
  for (let i = 0; i < 60; i++) {
    await page.keyboard.press('Tab')
    if (await page.evaluate(condition)) return
  }
  throw new Error(`Tab never leads to where ${condition}.`)
}

function brightness(page: Playground['page']): Promise<number> {
  return page.evaluate<number>(
    'Math.max(...getComputedStyle(document.body).backgroundColor.match(/[\\d.]+/g).slice(0, 3).map(Number))',
  )
}

/** What is wider inside than it is shown, and does not scroll. */
const CUT_OFF = `[...document.querySelectorAll('main *')]
  .filter((each) => each instanceof HTMLElement && each.clientWidth > 0 && each.scrollWidth > each.clientWidth + 1)
  .filter((each) => !['auto', 'scroll'].includes(getComputedStyle(each).overflowX))
  .filter((each) => getComputedStyle(each).textOverflow !== 'ellipsis' && !each.matches('.unseen, .axis, select'))
  .map((each) => each.className || each.id || each.tagName)`

const SMALL = `[...document.querySelectorAll('button, select, input, textarea, summary, .choices label')]
  .filter((each) => each.checkVisibility() && !each.matches('[type=radio]'))
  .map((each) => [each.getBoundingClientRect(), each])
  .filter(([{ width, height }]) => width < 24 || height < 24)
  .map(([{ width, height }, each]) => [each.id || each.className || each.textContent, width, height].join(' '))`

const WATCH_SHIFTS = `window.shifted = 0
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifted += entry.value
}).observe({ type: 'layout-shift', buffered: false })`
