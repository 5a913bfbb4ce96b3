import type { Answer } from 'once-per-key/core'
import { walkStorageKeys } from './keys.js'
import { readSealingKeys, type Target } from './target.js'

/** Looks at this many answers at most: where answers are sealed, the first ones show it. Records without an answer show nothing. */
const MOST_READ = 200

/** As a store shows an answer that was sealed, to whoever has no keys. */
export function isSealed({ status, statusMessage }: Pick<Answer, 'status' | 'statusMessage'>): boolean {
  return status === 0 && statusMessage === 'sealed'
}

/** Whether the store has sealed answers, and the command no keys: an answer that it wrote would be refused by the service. */
export async function hasSealedAnswersWithoutKeys(target: Target): Promise<boolean> {
  if (readSealingKeys().length > 0) return false
  let read = 0
  for await (const keys of walkStorageKeys(target)) {
    for (const key of keys) {
      const record = await findReadableRecord(target, key)
      if (record?.state !== 'completed' || record.answer === null) continue
      if (isSealed(record.answer)) return true
      if (++read === MOST_READ) return false
    }
  }
  return false
}

async function findReadableRecord({ store }: Target, key: string) {
  try {
    return await store.inspect?.(key)
  } catch {
    return null // One that cannot be read shows nothing.
  }
}
