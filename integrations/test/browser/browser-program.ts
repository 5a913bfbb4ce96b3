import { installedProgram, runs } from '../../../examples/servers/installed-program.js'

/** A real Chromium: `CHROME_PATH`, or the one on the PATH. */
export function browserProgram(): string {
  const { CHROME_PATH: chosen } = process.env
  if (chosen) {
    if (runs(chosen)) return chosen
    throw new Error(`CHROME_PATH names no program that runs; seen: ${JSON.stringify(chosen)}.`)
  }
  return installedProgram({
    names: ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'],
    debianPackage: 'chromium',
    need: 'The browser tests need Chromium on the PATH, or CHROME_PATH (Debian: apt-get install chromium; macOS: brew install chromium).',
  })
}
