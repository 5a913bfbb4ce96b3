import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { inTime } from '../../support/in-time.js'
import type { Findings, Violation } from '../layer.js'

/** The bundle of `service.main.ts`, beside the layer's own. */
const PROGRAM = fileURLToPath(new URL('./soak-service.js', import.meta.url))
const WORK_LIMIT_MS = 60_000
const EXIT_LIMIT_MS = 10_000

/** A service in a process of its own works, closes, and must end by itself. */
export async function exits(findings: Findings): Promise<void> {
  const child = fork(PROGRAM, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const exited = once(child, 'exit')
  try {
    const [told] = await inTime(Promise.race([once(child, 'message'), exited.then(() => [null])]), WORK_LIMIT_MS)
    const violations = (told as { violations: Violation[] } | null)?.violations
    findings.expect('L2', violations?.length === 0, () => `the service that was to exit: ${JSON.stringify(violations)}`)
    const [code] = await inTime(exited, EXIT_LIMIT_MS)
    findings.expect('L3', code === 0, () => `the process exited with code ${code}`)
  } catch (error) {
    findings.expect('L3', false, () => `the process does not end after its server was closed: ${error}`)
  } finally {
    child.kill('SIGKILL')
  }
}
