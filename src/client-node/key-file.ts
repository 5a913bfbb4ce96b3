import { createHash, randomUUID } from 'node:crypto'
import { link, mkdir, open, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { KeyStorage } from '../client/keys.js'

/**
 * Keys that outlive the process, for scripts and servers on Node: each open operation has a small file in `folder`, which is made if it
 * is not there. A key is on the disk before the first try, and of several processes over one folder the first one's key counts for
 * all. The folder must outlive the process, too: not a container's own file system.
 *
 * What the file system throws is rethrown; where a key could not be stored, nothing is sent.
 *
 * @example
 * const client = createClient({ keys: useKeyFile('/var/lib/payments/keys') })
 */
export function useKeyFile(folder: string): KeyStorage {
  const fileOf = (name: string) => join(folder, `${createHash('sha256').update(name).digest('hex')}.key`)
  return {
    async getItem(name) {
      return readFile(fileOf(name), 'utf8').catch(ignoreErrorCode('ENOENT'))
    },
    async setItem(name, key) {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      const draft = join(folder, `${randomUUID()}.draft`)
      try {
        await writeNewFile(draft, key)
        // Whole or not at all, and never over another process's: that one's requests may be on their way.
        await link(draft, fileOf(name)).catch(ignoreErrorCode('EEXIST'))
        await syncFolder(folder)
      } finally {
        await rm(draft, { force: true })
      }
    },
    async removeItem(name) {
      await rm(fileOf(name), { force: true })
    },
  }
}

async function writeNewFile(path: string, text: string): Promise<void> {
  const file = await open(path, 'wx', 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** The name of a new file, too, must survive a power failure. Windows cannot open a folder, and does it by itself. */
async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return
  const opened = await open(folder, 'r')
  try {
    await opened.sync()
  } finally {
    await opened.close()
  }
}

function ignoreErrorCode(code: string): (error: NodeJS.ErrnoException) => null {
  return (error) => {
    if (error.code !== code) throw error
    return null
  }
}
