import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, expect, inject, onTestFinished } from 'vitest'
import { startExample } from '../../../test/examples/example-process.js'

export interface PlaygroundOptions extends BrowserContextOptions {
  /** @default the one that all tests of a file share */
  readonly origin?: string
}

export type Playground = Awaited<ReturnType<typeof openPlayground>>

export const POLL = { interval: 20, timeout: 10_000 }

let browser: Promise<Browser> | undefined
let sharedOrigin = ''
let endShared = () => {}

/** One browser for a file of tests. */
export function launchedBrowser(): Promise<Browser> {
  browser ??= chromium.launch({
    executablePath: inject('browser'),
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--no-first-run',
    ],
  })
  return browser
}

/** The example as `npm start` runs it, on a free port. */
export function startBuilt(variables = {}, atEnd?: (end: () => void) => void) {
  return startExample({ main: inject('main') }, variables, atEnd)
}

beforeAll(async () => {
  const { origin } = await startBuilt({}, (end) => {
    endShared = end
  })
  sharedOrigin = origin
})

afterAll(async () => {
  endShared()
  await (await browser)?.close()
  browser = undefined
})

/** The page in a window of its own, ready to be used. A test in which it complains fails. */
export async function openPlayground({ origin = sharedOrigin, ...options }: PlaygroundOptions = {}) {
  const context = await (await launchedBrowser()).newContext({
    viewport: { width: 1_280, height: 900 },
    reducedMotion: 'reduce',
    ...options,
  })
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(error.message))
  page.on('console', (message) => {
    // The browser notes each answer of 400 and more; a policy that is violated is noted too.
    const isAnswer = /^Failed to load resource: (the server responded|net::ERR_)/.test(message.text())
    if (['error', 'warning'].includes(message.type()) && !isAnswer) complaints.push(message.text())
  })
  onTestFinished(async () => {
    await context.close()
    expect(complaints).toEqual([])
  })
  await page.goto(origin)
  await ready(page)

  return {
    page,
    context,
    /** Of the page, so far. */
    complaints,
    story: (id: string) => page.locator(`[data-story="${id}"]`),

    /** Plays a story to its end, and resolves with the sentence that it tells. */
    async play(id: string): Promise<string> {
      await page.locator(`[data-story="${id}"]`).click()
      await page.locator(`[data-story="${id}"][data-playing]`).waitFor({ state: 'detached' })
      await settled(page)
      return (await page.locator('#sentence').textContent()) ?? ''
    },

    /** The requests, as words: a line for each client. */
    async clients(): Promise<string[][]> {
      const lanes = await page.locator('.lane').all()
      return Promise.all(lanes.map((lane) => lane.locator('.chip').allTextContents()))
    },

    bars: (decision: string) => page.locator(`.track .bar[data-decision="${decision}"]`),
    runs: async () => Number(await page.locator('#runs').textContent()),
    requests: () => page.locator('#requests-words').textContent(),

    /** What the facts say, and the diagram. */
    async record() {
      const text = (id: string) => page.locator(`#${id}`).textContent()
      return {
        state: await text('record-state'),
        attempt: await text('record-attempt'),
        lit: await page.locator('.node.lit text').allTextContents(),
      }
    },

    async choose(settings: { readonly operation?: string; readonly merchant?: string; readonly takes?: string }) {
      for (const [id, value] of Object.entries(settings)) await page.locator(`#${id}`).selectOption(value)
    },

    async useKey(key: string) {
      await page.getByLabel('My own').check()
      await page.locator('#key').fill(key)
      await page.locator('#key').blur()
    },
  }
}

/** Live, and filled. */
export async function ready(page: Page): Promise<void> {
  await page.locator('#feed[data-state="live"]').waitFor()
  await expect.poll(() => page.locator('#body').inputValue(), POLL).toContain(':')
}

/** The feed has told the end of what was sent. */
async function settled(page: Page): Promise<void> {
  await expect.poll(() => page.locator('#record-state').textContent(), POLL).not.toBe('in-flight')
}
