import type { Request, Response } from 'express'
import { type Payout, sendPayout, type Work } from '../payout.js'
import { type Ground, KEY, type Open, type Protection, RETENTION_MS } from '../protection.js'
import { type OpenClient, openIoredis, openNodeRedis, type RedisCommands } from '../redis-commands.js'

/** The least that any protection in Redis needs: `SET NX GET` and `SET`; to replay, one `GET`. */
export const floorIoredis: Open = async (work, ground) => floor(await openIoredis(ground.redisPort), work, ground)

export const floorIoredisAutoPipelining: Open = async (work, ground) =>
  floor(await openIoredis(ground.redisPort, true), work, ground)

export const floorNodeRedis: Open = async (work, ground) => floor(await openNodeRedis(ground.redisPort), work, ground)

const CLAIMED = 'claimed'

function floor({ commands, close }: OpenClient<unknown>, work: Work, { phase }: Ground): Protection {
  return {
    handlers: [
      async (req, res) => {
        const key = `floor:${req.headers[KEY]}`
        const before =
          (phase === 'replay' ? await commands.get(key) : null) ?? (await commands.claim(key, CLAIMED, RETENTION_MS))
        if (before === null) await run(req, res, work, commands, key)
        else if (before === CLAIMED) res.status(409).json({ error: 'in flight' })
        else replay(res, before)
      },
    ],
    close,
  }
}

async function run(req: Request, res: Response, work: Work, commands: RedisCommands, key: string): Promise<void> {
  const payout = await work(req)
  await commands.set(key, kept(payout), RETENTION_MS)
  sendPayout(res, payout)
}

function kept({ status, location, body }: Payout): string {
  return `${status} ${location} ${JSON.stringify(body)}`
}

function replay(res: Response, before: string): void {
  const end = before.indexOf(' ', 4)
  res
    .status(Number(before.slice(0, 3)))
    .location(before.slice(4, end))
    .type('json')
    .send(before.slice(end + 1))
}
