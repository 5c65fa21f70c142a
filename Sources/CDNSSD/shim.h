#pragma once
#include <dns_sd.h>
#include <avahi-common/malloc.h>
