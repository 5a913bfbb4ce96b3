import { type CanActivate, type ExecutionContext, Injectable, UnauthorizedException } from '@nestjs/common'

/** Stands for your authentication: it says whose request it is. */
@Injectable()
export class MerchantGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest()
    const merchantId = request.headers['x-merchant']
    if (!merchantId) throw new UnauthorizedException()
    request.user = { merchantId }
    return true
  }
}
