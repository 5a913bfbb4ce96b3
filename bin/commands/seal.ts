import { newSealingKey, sealingKeyId } from 'once-per-key/sealed'
import { type CommandLine, UsageError } from '../command-line.js'
import { printJson } from '../printed.js'
import { readSealingKeys } from '../target.js'

/** Makes a key; or shows what those of the environment are called. The id goes to where it is no part of what is piped on. */
export async function runSeal({ options: { ids, json } }: CommandLine): Promise<number> {
  if (ids) {
    const known = readSealingKeys().map(computeKeyId)
    if (known.length === 0) throw new UsageError('ONCE_PER_KEY_SEALING_KEYS has no keys.')
    if (json) printJson(known)
    else for (const [i, id] of known.entries()) console.log(`${id}  ${i === 0 ? 'seals, and opens' : 'opens'}`)
    return 0
  }
  const key = newSealingKey()
  if (json) printJson({ key, id: sealingKeyId(key) })
  else {
    console.log(key)
    console.error(`Its id: ${sealingKeyId(key)}. Keep it where you keep the database's password.`)
  }
  return 0
}

function computeKeyId(key: string, index: number): string {
  try {
    return sealingKeyId(key)
  } catch {
    throw new UsageError(`Key ${index + 1} of ONCE_PER_KEY_SEALING_KEYS is no base64 of 32 bytes.`)
  }
}
