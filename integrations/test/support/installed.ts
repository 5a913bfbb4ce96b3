import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const INTEGRATIONS = fileURLToPath(new URL('../../', import.meta.url))

/** The folder of a package: of `integrations`, or where that has none, of the root. */
export function installed(name: string): string {
  const own = join(INTEGRATIONS, 'node_modules', name)
  return existsSync(own) ? own : join(INTEGRATIONS, '../node_modules', name)
}
