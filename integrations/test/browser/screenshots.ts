import { mkdir, stat } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { openPlayground, type PlaygroundOptions } from './playground.js'

const folder = fileURLToPath(new URL('../../../examples/payments/playground/screenshots', import.meta.url))
const MOST_BYTES = 300_000

const wide = { viewport: { width: 1_280, height: 900 } }
const phone = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2 }

/** Stories that have ended, under a key that is always the same. */
test.each([
  ['light', 'order-1001', ['ten'], { ...wide, colorScheme: 'light' }],
  ['dark', 'order-1002', ['crash', 'change'], { ...wide, colorScheme: 'dark' }],
  ['phone', 'order-1003', ['send', 'again'], { ...phone, colorScheme: 'light' }],
] as const)('%s', async (name, key, stories, options: PlaygroundOptions) => {
  const playground = await openPlayground(options)
  const { page } = playground
  const request = await page.locator('#request').getAttribute('open')
  await page.evaluate('document.querySelector("#request").open = true')
  await playground.useKey(key)
  if (request === null) await page.evaluate('document.querySelector("#request").open = false')
  for (const story of stories) await playground.play(story)
  await mkdir(folder, { recursive: true })
  const path = `${folder}/${name}.png`
  // As somebody sees it who points at nothing: from its top, or on a phone where the story has led.
  await page.mouse.move(0, 0)
  await page.evaluate('document.activeElement.blur()')
  if (name !== 'phone') await page.evaluate('scrollTo(0, 0)')
  await page.screenshot({ path, fullPage: name !== 'phone' })
  expect((await stat(path)).size).toBeLessThan(MOST_BYTES)
})
