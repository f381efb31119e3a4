from functools import cache
from zoneinfo import available_timezones

from tidesched_web.common.hints import nearest

_SHANGHAI = (
    "北京 上海 中国 天津 重庆 广州 深圳 杭州 南京 苏州 武汉 成都 西安 beijing peking china shenzhen guangzhou hangzhou "
    "chengdu utc+8 utc+08:00 gmt+8 gmt+08:00 +8 +08:00"
)
# What people call a zone that has another name in the database of time zones.
_CALLED = {
    **dict.fromkeys(_SHANGHAI.split(), "Asia/Shanghai"),
    "乌鲁木齐": "Asia/Urumqi",
    "香港": "Asia/Hong_Kong",
    "澳门": "Asia/Macau",
    "台北": "Asia/Taipei",
    "东京": "Asia/Tokyo",
    "日本": "Asia/Tokyo",
    "首尔": "Asia/Seoul",
    "韩国": "Asia/Seoul",
    "新加坡": "Asia/Singapore",
    "伦敦": "Europe/London",
    "巴黎": "Europe/Paris",
    "柏林": "Europe/Berlin",
    "纽约": "America/New_York",
    "洛杉矶": "America/Los_Angeles",
}


@cache
def time_zones() -> tuple[str, ...]:
    return tuple(sorted(available_timezones(), key=lambda name: ("/" not in name, name)))


@cache
def _by_place() -> dict[str, str]:
    return {name.rpartition("/")[2].casefold(): name for name in reversed(time_zones()) if "/" in name}


def meant_zone(name: str) -> str | None:
    text = name[:253].strip().casefold().removesuffix("时间").replace(" ", "_")
    if found := _CALLED.get(text) or _by_place().get(text):
        return found
    return nearest(name, time_zones())
